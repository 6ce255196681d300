// Mutate takes each safety check of a reap out of its source, one at a time, and runs the test that
// guards it, which must fail. It is run from the top of the module, by `make mutate`.
//
// The sources stay as they are: the compiler is given the changed file in their place (go help
// build, -overlay).
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
		os.RemoveAll(dir) //nolint:errcheck // it is in the folder for what may stay
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	// Each guard must pass as long as its check is there.
	if err := passing(); err != nil {
		return err
	}
	var (
		group   sync.WaitGroup
		printed sync.Mutex
		wrong   int
		turns   = make(chan struct{}, runtime.NumCPU())
	)
	for i, c := range checks {
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
	fmt.Printf("all %d checks are guarded\n", len(checks))
	return nil
}

// check is one safety check in the source, and the test that fails without it.
type check struct {
	law   int
	file  string
	what  string
	guard string
	edits []edit
}

// edit replaces a snippet, which has to be in the file exactly once.
type edit struct{ old, new string }

func (c check) String() string {
	return fmt.Sprintf("law %d  %s: %s  (%s)", c.law, c.file, c.what, c.guard)
}

// takeOut runs the guard without the check.
func (c check) takeOut(dir string) error {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return err
	}
	source := string(text)
	for _, e := range c.edits {
		if n := strings.Count(source, e.old); n != 1 {
			return fmt.Errorf("the snippet is in the file %d times, want once: bring the list up to date\n       %s", n, e.old)
		}
		source = strings.Replace(source, e.old, e.new, 1)
	}
	overlay, err := write(dir, c.file, source)
	if err != nil {
		return err
	}
	out, err := test(c.file, c.guard, "-overlay", overlay)
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

// write puts the changed source and the overlay that names it into dir.
func write(dir, file, source string) (overlay string, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(file))
	original, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(source), 0o600); err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// passing runs all guards on the sources as they are.
func passing() error {
	guards, of := map[string][]string{}, map[string]string{}
	for _, c := range checks {
		dir := filepath.Dir(c.file)
		guards[dir], of[dir] = append(guards[dir], c.guard), c.file
	}
	for dir, names := range guards {
		out, err := test(of[dir], strings.Join(names, "|"), "-v")
		if err != nil {
			return fmt.Errorf("with all checks in place:\n%s", out)
		}
		for _, name := range names {
			if !strings.Contains(out, "--- PASS: "+name+" ") {
				return fmt.Errorf("%s has no test %s that is run here", dir, name)
			}
		}
	}
	return nil
}

// test runs tests of the package that a file belongs to.
func test(file, names string, more ...string) (string, error) {
	args := append([]string{"test", "-count=1", "-vet=off", "-timeout=2m", "-run", "^(" + names + ")$"}, more...)
	out, err := exec.Command("go", append(args, "./"+filepath.Dir(file))...).CombinedOutput()
	return string(out), err
}
