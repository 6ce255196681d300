package configured

import (
	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
	"mcpdoctor/rules/process"
	"slices"
	"strings"
)

// How far a configured command may be recognised. What is recognised may be ended, and the words of
// a command alone are seldom a proof: a living job may have the same. The nearer a process is to a
// client, the fewer words it takes.

// reach is where a process with the words of an entry may be taken for its server.
type reach uint8

const (
	reachClient reach = iota // only where a living client started it
	reachLeft                // also where whoever started it is gone
	reachFolder              // also in the folder that the entry is started in
	reachAll                 // its words say what is started, wherever that is
)

// reaches tells how far the words of an entry say what they start.
func (e *entry) reaches() reach {
	c := &e.command
	switch {
	case c.Program == "", jobs[command.LastSegment(c.Program)], catalog.Load().Lookalikes[command.LastSegment(c.Program)], e.server.Named, ofSystem(c):
		return reachClient
	case c.Kind == command.KindImage:
		return reachAll
	case e.path != nil && (len(e.path) > 1 || !command.IsAbsolute(e.path[0])):
		return reachClient // where it lies cannot be compared
	case c.Path != "" && !command.IsAbsolute(c.Path) && !specifier(c.Path), strings.HasPrefix(c.Program, "."), strings.HasPrefix(c.From, "."):
		return reachFolder
	case c.Kind == command.KindModule, projectRun(c):
		return reachFolder
	case c.Kind == command.KindPackage, c.Path != "":
		return reachAll
	case !slices.ContainsFunc(e.args, func(p pattern) bool { return strings.Join(p, "") != "" }):
		return reachClient // a name alone, or with what nobody knows
	}
	return reachLeft
}

// recognises tells how surely a process is the server of an entry that it has all the words of, or,
// when it is not exact, the first of.
func (e *entry) recognises(s *subject, exact bool) (sure process.Confidence, ok bool) {
	switch {
	case s.early:
		return process.Likely, true
	case !process.OnPipe(s.p): // nobody can talk to it
	case e.isBelow(s) && e.lent && (e.reach == reachClient || slices.ContainsFunc(e.command.Launchers, shell)):
		return process.Possible, true // a client starts its user's commands in the same way, such as hooks
	case e.isBelow(s) && exact:
		return process.Certain, true
	case e.isBelow(s):
		return process.Likely, true
	case !exact || s.job:
	case e.lent:
		if e.inside && s.left && within(s.p.CWD, e.server.Project, s.windows) && e.isInside(s) {
			return process.Possible, true
		}
	case e.isFar(s):
		return process.Certain, true
	}
	return "", s.rec != nil && e.mayName(s)
}

// isBelow tells that a client started a process, and that it is one that reads the entry.
func (e *entry) isBelow(s *subject) bool {
	switch {
	case s.client == nil:
		return false
	case e.lent:
		return s.client.Name == e.server.Client && within(s.clientCWD, e.server.Project, s.windows)
	}
	return !e.server.Named || s.client.Name == e.server.Client
}

// isInside tells that a process runs what lies in the project: a script by its interpreter, or a
// program.
func (e *entry) isInside(s *subject) bool {
	c := &s.command
	return within(s.path(), e.server.Project, s.windows) && (c.Runtime != "" || c.Kind == command.KindBinary) && !slices.ContainsFunc(c.Launchers, shell)
}

// isFar tells that a process away from any client is within the reach of an entry.
func (e *entry) isFar(s *subject) bool {
	if e.cwd != "" && !sameFolder(s.p.CWD, e.cwd, s.windows) {
		return false
	}
	switch e.reach {
	case reachLeft:
		return s.left
	case reachFolder:
		return sameFolder(s.folder, e.folder, s.windows) || e.path != nil && command.IsAbsolute(s.command.Path)
	case reachAll:
		return e.command.Kind != command.KindPackage || e.command.Runtime != "" || fetched(s) || s.left
	}
	return false
}

// mayName tells that a process which is known anyhow may have the name of an entry.
func (e *entry) mayName(s *subject) bool {
	switch {
	case e.lent:
		return within(s.p.CWD, e.server.Project, s.windows)
	case e.server.Named:
		return false
	}
	return e.path != nil || e.folder == "" || s.folder == "" || sameFolder(s.folder, e.folder, s.windows)
}

func sameFolder(a, b string, windows bool) bool {
	return within(a, b, windows) && within(b, a, windows)
}

// fetched tells that a process runs a package from where launchers keep what they fetched, or is
// such a launcher; and not what somebody has installed for a project.
func fetched(s *subject) bool {
	for _, l := range s.command.Launchers {
		if installers[l] != "" {
			return true
		}
	}
	p := command.CleanPath(s.command.Path)
	return slices.ContainsFunc([]string{"/_npx/", "/uv/", "/pipx/", "/dlx", "/bunx-"}, func(part string) bool { return strings.Contains(p, part) })
}

// specifier tells that a path is none, but where Deno finds a package: npm:x, https://host/x.ts.
func specifier(p string) bool {
	_, is := command.CutSpecifier(p)
	return is || strings.HasPrefix(p, "https://") || strings.HasPrefix(p, "http://")
}

// projectRun tells that a command starts what the project in the working directory has: uv run x,
// pnpm exec x, cargo run.
func projectRun(c *command.Command) bool {
	return slices.ContainsFunc(c.Launchers, func(l string) bool {
		return strings.ContainsRune(l, ' ') && installers[l] == "" && !process.Container(l) && (c.Path == "" || !command.IsAbsolute(c.Path))
	})
}

// shell tells that a launcher is one.
func shell(launcher string) bool {
	return launcher == "sh" || launcher == "cmd" || launcher == "powershell"
}

// shellLine tells that a process is a shell, or started one, that was given a line to run.
func (s *subject) shellLine() bool {
	i := slices.IndexFunc(s.command.Launchers, shell)
	if i != 0 {
		return i > 0
	}
	_, rest := command.LauncherRow(s.name, s.words[1:])
	return rest.Line || !catalog.Load().IsShell(s.name)
}

// ofSystem tells that a program came with the system: /usr/bin/x. What npm installs there is not
// meant.
func ofSystem(c *command.Command) bool {
	p := command.Lower(command.CleanPath(c.Path))
	if c.Runtime == "node" {
		return false
	}
	for _, dir := range [...]string{"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/libexec/", "/etc/", "/system/", "c:/windows/"} {
		if strings.HasPrefix(p, dir) {
			return true
		}
	}
	return false
}

// jobs are programs that people and timers run for hours and that no client starts; those of the
// catalog's lookalikes are more.
var jobs = catalog.Words("acme.sh aria2c borgmatic bacula-dir bacula-fd certbot certbot-auto convert dehydrated exiftool ffmpeg ffprobe gs gunicorn handbrakecli " +
	"imapsync influx innobackupex kopia lego logrotate magick mariabackup mariadb mariadb-dump mbsync mongodump mongoexport mongoimport mongorestore " +
	"msmtp mysqlcheck newsyslog offlineimap pandoc pg_basebackup pg_dump pg_dumpall pg_receivewal pg_restore pgbackrest pigz pv rdiff-backup reindexdb " +
	"rsnapshot run-parts s3cmd sox tarsnap updatedb uvicorn vacuumdb wal-g webhook wkhtmltopdf xtrabackup xz youtube-dl yt-dlp zip zstd")
