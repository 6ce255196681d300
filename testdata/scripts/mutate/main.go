// Mutate removes each safety check of a reap from its source, one at a time, and runs the test that guards it,
// which must fail. Run it from the top of the module, with `make mutate`.
//
// The sources are not touched: the compiler reads the changed file in their place (-overlay in go help build).
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

func main() {
	dir, err := os.MkdirTemp("", "mutate-")
	if err == nil {
		err = run(dir)
		os.RemoveAll(dir) //nolint:errcheck // a leftover in the temporary folder does no harm
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the guards of scan/terminate need Linux, this is %s", runtime.GOOS)
	}
	// Each guard must pass as long as its check is there.
	skipped, err := passing()
	if err != nil {
		return err
	}
	var (
		group   sync.WaitGroup
		printed sync.Mutex
		wrong   int
		turns   = make(chan struct{}, runtime.NumCPU())
	)
	for i, c := range checks {
		if skipped[c.guard] {
			fmt.Printf("NOT TESTED  %s: the guard is skipped here; it may need root\n", c)
			continue
		}
		group.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			err := c.takeOut(filepath.Join(dir, fmt.Sprint(i)))
			printed.Lock()
			defer printed.Unlock()
			if err != nil {
				wrong++
				fmt.Printf("WRONG  %s\n       %v\n", c, err)
				return
			}
			fmt.Printf("ok     %s\n", c)
		})
	}
	group.Wait()
	if wrong > 0 {
		return fmt.Errorf("%d of %d checks are not guarded", wrong, len(checks))
	}
	fmt.Println("every check is guarded")
	return nil
}

// check is one safety check in the source, and the test that fails without it.
type check struct {
	law   int
	what  string
	dir   string // of the package
	guard string // a test of that package
	edits []edit // what takes the check out
}

func (c check) String() string {
	return fmt.Sprintf("law %d  %s: %s  (%s)", c.law, c.dir, c.what, c.guard)
}

// takeOut runs the guard without the check. dir is a temporary folder for it.
func (c check) takeOut(dir string) error {
	src, err := load(c.dir)
	if err != nil {
		return err
	}
	for _, e := range c.edits {
		if err := src.apply(e); err != nil {
			return err
		}
	}
	changed, err := src.changed()
	if err != nil {
		return err
	}
	overlay, err := write(dir, changed)
	if err != nil {
		return err
	}
	out, err := test(c.dir, c.guard, "-overlay", overlay)
	switch {
	case err == nil:
		return fmt.Errorf("%s passes without the check", c.guard)
	case !strings.Contains(out, "--- FAIL: "+c.guard):
		return fmt.Errorf("%s does not run without the check:\n%s", c.guard, out)
	case strings.Contains(out, "panic: "):
		return fmt.Errorf("%s fails, but by a panic:\n%s", c.guard, out)
	}
	return nil
}

// write puts the changed sources into dir, with the overlay that names them.
func write(dir string, sources map[string]string) (overlay string, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, source := range sources {
		original, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		replace[original] = filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(replace[original], []byte(source), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// passing runs all guards on the unchanged sources and returns those that are skipped here.
func passing() (skipped map[string]bool, err error) {
	guards := map[string][]string{}
	for _, c := range checks {
		guards[c.dir] = append(guards[c.dir], c.guard)
	}
	skipped = map[string]bool{}
	for dir, names := range guards {
		out, err := test(dir, strings.Join(names, "|"), "-v")
		if err != nil {
			return nil, fmt.Errorf("with all checks in place:\n%s", out)
		}
		for _, name := range names {
			switch {
			case strings.Contains(out, "--- SKIP: "+name+" "), strings.Contains(out, "--- SKIP: "+name+"/"):
				skipped[name] = true
			case !strings.Contains(out, "--- PASS: "+name+" "):
				return nil, fmt.Errorf("%s has no test %s", dir, name)
			}
		}
	}
	return skipped, nil
}

// test runs tests of one package and returns their output.
func test(dir, names string, more ...string) (string, error) {
	args := append([]string{"test", "-count=1", "-vet=off", "-timeout=2m", "-run", "^(" + names + ")$"}, more...)
	out, err := exec.Command("go", append(args, "./"+dir)...).CombinedOutput()
	return string(out), err
}
