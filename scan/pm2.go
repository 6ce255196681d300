package scan

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// pm2Apps are the names of the apps of each pm2, by its folder and their PIDs. A nil map stands for a folder that
// cannot be read.
type pm2Apps map[string]map[int]string

// job reports whether p is an app of the pm2 that is its parent: pm2 writes the PID of each app to
// HOME/pids/NAME-ID.pid. The variables that name the app prove nothing, since descendants inherit them; nor does
// a file without the parent, which a killed pm2 leaves behind.
func (apps pm2Apps) job(ctx context.Context, p, parent *Process) (Service, supervised) {
	if parent == nil {
		return Service{}, no
	}
	home := pm2Home(p, parent)
	if home == "" {
		return Service{}, no
	}
	pids, ok := apps[home]
	if !ok {
		pids = readPM2(ctx, home)
		apps[home] = pids
	}
	if pids == nil {
		return Service{}, perhaps
	}
	name, ok := pids[p.PID]
	if !ok {
		return Service{}, no
	}
	return Service{Manager: "pm2", Name: name, MainPID: p.PID}, yes
}

// pm2Home returns the folder of the pm2 that is p's parent, empty if it is none. The daemon has it in its title,
// "PM2 v7.0.4: God Daemon (/root/.pm2)"; pm2-runtime, PID 1 of a container, in the environment of its apps.
func pm2Home(p, parent *Process) string {
	title := argAt(parent, 0)
	if title == "" {
		title = parent.Cmdline
	}
	if strings.HasPrefix(title, "PM2 v") {
		_, home, _ := strings.Cut(title, ": God Daemon (")
		return home[:max(0, strings.LastIndexByte(home, ')'))] // a title is padded
	}
	switch filepath.Base(argAt(parent, 1)) {
	case "pm2-runtime", "pm2-docker", "pm2":
		return p.Env["PM2_HOME"]
	}
	return ""
}

// readPM2 reads the PID files of a pm2. The folder comes from a command line, which any user can choose: it may be
// on a dead file system, so reading is abandoned when ctx is done, and only a number is taken from a file.
func readPM2(ctx context.Context, home string) map[int]string {
	pids, _ := within(ctx, func() map[int]string { return pm2PIDs(filepath.Join(home, "pids")) })
	return pids
}

// pm2PIDs reads the files NAME-ID.pid of a folder; nil when it cannot be listed.
func pm2PIDs(folder string) map[int]string {
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	pids := make(map[int]string)
	for _, file := range files {
		name, ok := strings.CutSuffix(file.Name(), ".pid")
		info, err := file.Info()
		if !ok || err != nil || !info.Mode().IsRegular() || info.Size() > 32 {
			continue
		}
		b, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			continue
		}
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i]
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && pid > 0 {
			pids[pid] = name
		}
	}
	return pids
}
