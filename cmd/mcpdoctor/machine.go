package main

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/config"
	"mcpdoctor/scan/configfile"
)

// localMachine is the machine that mcpdoctor runs on, for package look.
type localMachine struct{ getenv func(string) string }

func (localMachine) Take(ctx context.Context, now time.Time) (*scan.Snapshot, error) {
	snap, err := scan.Take(ctx, scan.Options{Now: now})
	if err != nil {
		return nil, &problem{what: "cannot see the processes: " + err.Error(), hint: "on Linux, /proc has to be mounted and readable"}
	}
	return snap, nil
}

func (localMachine) Examine(ctx context.Context, s *scan.Snapshot, pids, brief []int) {
	scan.Examine(ctx, s, pids, scan.ExamineOptions{Brief: brief})
}

// configLimit is how long reading the configuration files may take. They are small; a home directory on
// a server that does not answer must not delay the look at this machine's processes.
const configLimit = time.Second

func (m localMachine) Configuration(ctx context.Context, folders []config.Folder, named []config.Named) config.Found {
	ctx, cancel := context.WithTimeout(ctx, configLimit)
	defer cancel()
	return configfile.Read(ctx, configfile.Options{System: runtime.GOOS, Home: home(m.getenv), Env: m.getenv, Folders: folders, Named: named})
}

// home is the home directory of the user who runs mcpdoctor; empty when it is not known.
func home(getenv func(string) string) string {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	fallback, _ := os.UserHomeDir() // the same, but for systems that have neither
	return cmp.Or(getenv(name), fallback)
}

func (localMachine) Versions(ctx context.Context, s *scan.Snapshot, programs map[int]string) {
	scan.Versions(ctx, s, programs, scan.ExamineOptions{})
}

func (localMachine) Services(ctx context.Context, s *scan.Snapshot, pids []int) {
	scan.Services(ctx, s, pids, scan.ExamineOptions{})
}

// holdersLimit is for one pass over the descriptors of every process. Half of it would prove nothing, so
// a busy machine is given time.
const holdersLimit = 5 * time.Second

func (localMachine) Holders(ctx context.Context, s *scan.Snapshot, pids []int) {
	scan.Holders(ctx, s, pids, scan.ExamineOptions{Deadline: holdersLimit})
}

func (localMachine) PSS(ctx context.Context, s *scan.Snapshot, pids []int) {
	scan.ReadPSS(ctx, s, pids, scan.ExamineOptions{})
}
