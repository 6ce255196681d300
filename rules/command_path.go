package rules

import (
	"path"
	"strings"
)

// Paths: from where a program lies to what it is called. Both separators are known on every
// system, since Windows programs run under WSL and reports are read elsewhere.

// lastSegment of a path, as it is written.
func lastSegment(p string) string {
	return p[strings.LastIndexAny(p, `/\`)+1:]
}

func isPath(word string) bool {
	return strings.IndexByte(word, '/') >= 0 || strings.IndexByte(word, '\\') >= 0
}

// foldName is the name that a first word is looked up by: its last segment in lower case, without
// the extension of a program and without a log-in shell's dash.
func foldName(word string) string {
	name := strings.TrimPrefix(lastSegment(word), "-")
	if name == "" {
		name = word
	}
	name = trimExecutable(lower(name))
	switch {
	case strings.Contains(name, " helper"):
		// macOS: "Cursor Helper (Plugin)" is Cursor; the other helpers draw and are left alone.
		if main, ok := strings.CutSuffix(name, " helper (plugin)"); ok {
			return main
		}
	case name == "electron" && strings.Contains(word, ".app/"):
		// VS Code's program is called Electron; its bundle has the name.
		bundle := word[:strings.LastIndex(word, ".app/")]
		return lower(lastSegment(bundle))
	case isVersion(name) && isPath(word):
		// ~/.local/share/claude/versions/2.1.30
		for _, dir := range parents(word) {
			if dir = lower(dir); dir != "versions" && !isVersion(dir) {
				return dir
			}
		}
	}
	return name
}

// lower is strings.ToLower for names, which seldom need it.
func lower(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' || c >= 0x80 {
			return strings.ToLower(s)
		}
	}
	return s
}

// trimExecutable takes off the extensions that make a file a program.
func trimExecutable(name string) string {
	if n := len(name) - 4; n > 0 {
		switch name[n:] {
		case ".exe", ".cmd", ".bat", ".com", ".ps1":
			return name[:n]
		}
	}
	return name
}

// scriptRuntimes are the extensions of scripts and what runs them.
var scriptRuntimes = map[string]string{
	".js": "node", ".mjs": "node", ".cjs": "node", ".ts": "node", ".mts": "node", ".cts": "node", ".jsx": "node", ".tsx": "node",
	".py": "python", ".pyw": "python", ".pyz": "python", ".jar": "java", ".dll": "dotnet", ".rb": "ruby", ".php": "php", ".pl": "perl",
	".lua": "lua", ".r": "r", ".jl": "julia", ".sh": "", ".bash": "", ".zsh": "",
}

// extension returns the known extension of a script, "" for all others.
func extension(name string) string {
	if i := strings.LastIndexByte(name, '.'); i > 0 && len(name)-i <= 5 {
		if _, ok := scriptRuntimes[lower(name[i:])]; ok {
			return name[i:]
		}
	}
	return ""
}

func isScript(word string) bool { return extension(lastSegment(word)) != "" }

// runtimeOfScript returns what runs a script that was started by its own name.
func runtimeOfScript(word string) string {
	return scriptRuntimes[lower(extension(lastSegment(word)))]
}

// stem is a path's last segment in lower case, without the extensions of scripts and programs.
func stem(p string) string {
	name := trimExecutable(lastSegment(p))
	name = strings.TrimSuffix(name, extension(name))
	return trimExecutable(lower(name))
}

// generic are names that say nothing: the folder's, or the package's, says more.
var generic = map[string]bool{
	"": true, "__main__": true, "_": true, ".": true, "app": true, "bin": true, "bundle": true, "cli": true, "entry": true, "entrypoint": true,
	"index": true, "launch": true, "main": true, "mod": true, "run": true, "server": true, "start": true, "stdio": true, "serve": true, "program": true,
}

// storage are folders that hold a program without naming it.
var storage = map[string]bool{
	"": true, ".": true, "..": true, "app": true, "bin": true, "build": true, "cjs": true, "code": true, "debug": true, "dist": true, "esm": true,
	"home": true, "lib": true, "opt": true, "out": true, "release": true, "root": true, "server": true, "src": true, "srv": true, "target": true,
	"tmp": true, "usr": true, "workspace": true,
}

// parseScript names a script by its package, its stem, or the folder that it is the entry of.
func parseScript(p string) (ProgramKind, string) {
	if rest, ok := cutSpecifier(p); ok { // deno run npm:@scope/x-mcp
		name, _ := parsePackage(rest)
		return KindPackage, name
	}
	p = cleanPath(p)
	if i := strings.LastIndex(p, "node_modules/"); i >= 0 {
		return KindPackage, nodePackage(p[i+len("node_modules/"):])
	}
	for _, packages := range [...]string{"site-packages/", "dist-packages/"} {
		if i := strings.LastIndex(p, packages); i >= 0 {
			return KindModule, pythonModule(p[i+len(packages):])
		}
	}
	name := stem(p)
	dirs := parents(p)
	if extension(p) == "" && len(dirs) > 0 && (dirs[0] == "bin" || strings.EqualFold(dirs[0], "Scripts")) {
		return KindPackage, strings.TrimSuffix(name, "-script") // what npm -g, pip or uv have installed
	}
	if generic[name] {
		if dir := telling(dirs); dir != "" {
			return KindScript, lower(dir)
		}
	}
	return KindScript, name
}

// telling returns the nearest folder whose name says something.
func telling(dirs []string) string {
	for _, dir := range dirs {
		if !storage[lower(dir)] && !isVersion(dir) {
			return dir
		}
	}
	return ""
}

// nodePackage names the package of a path below node_modules.
func nodePackage(p string) string {
	if bin, ok := strings.CutPrefix(p, ".bin/"); ok {
		return stem(bin)
	}
	name, inside, _ := strings.Cut(p, "/")
	if strings.HasPrefix(name, "@") {
		var base string
		base, inside, _ = strings.Cut(inside, "/")
		name += "/" + base
	}
	name = lower(name)
	if extension(name) != "" && inside == "" {
		return stem(name)
	}
	// Some packages hold several servers, each with a script of its own.
	if script := stem(inside); strings.HasSuffix(script, "-server") && essence(script) != essence(name) {
		return name + "/" + script
	}
	return name
}

func pythonModule(p string) string {
	name, _, _ := strings.Cut(p, "/")
	return stem(name)
}

// cleanPath makes a path comparable: forward slashes, no "x/../".
func cleanPath(p string) string {
	p = strings.ReplaceAll(p, `\`, "/")
	if strings.Contains(p, "/./") || strings.Contains(p, "/../") {
		return path.Clean(p)
	}
	return p
}

// parents returns the folders of a path, the nearest first. Deep folders name nothing, so that a
// few are enough.
func parents(p string) []string {
	var dirs []string
	for range 8 {
		i := strings.LastIndexAny(p, `/\`)
		if i < 0 {
			break
		}
		p = p[:i]
		if dir := lastSegment(p); dir != "" && !strings.HasSuffix(dir, ":") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// isVersion tells that a name is a version number only.
func isVersion(name string) bool {
	name = strings.TrimPrefix(name, "v")
	digits, dots := 0, 0
	for i := range len(name) {
		switch c := name[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '.':
			dots++
		case i > 0 && (c == '-' || c == '+' || c == '_') && dots > 0:
			return digits > 1 // 1.2.3-beta.4
		default:
			return false
		}
	}
	return digits > 1 && dots > 0
}

// cutSpecifier takes the registry off a specifier of Deno's.
func cutSpecifier(word string) (string, bool) {
	for _, registry := range [...]string{"npm:", "jsr:"} {
		if rest, ok := strings.CutPrefix(word, registry); ok {
			return strings.TrimPrefix(rest, "/"), true
		}
	}
	return word, false
}

// parsePackage cuts a package as npm, pip and uv are given it into name and version: @scope/x@1.2,
// x==0.2.6, x[extra]>=1, git+https://host/owner/x@main.
func parsePackage(spec string) (name, version string) {
	spec, _ = cutSpecifier(spec)
	if strings.Contains(spec, "://") || strings.HasPrefix(spec, "git+") || strings.HasPrefix(spec, "github:") {
		spec, _, _ = strings.Cut(spec, "#")
		spec = strings.TrimRight(spec, "/")
		spec = lastSegment(spec)
		name, version, _ = strings.Cut(spec, "@")
		return lower(strings.TrimSuffix(name, ".git")), version
	}
	if isPath(spec) && !strings.HasPrefix(spec, "@") {
		name, version, _ = strings.Cut(lastSegment(spec), "@")
		return stem(name), version
	}
	name = spec
	if i := strings.LastIndexByte(spec, '@'); i > 0 {
		name, version = spec[:i], spec[i+1:]
	} else if i := strings.IndexAny(spec, "=<>~!;"); i > 0 {
		name, version = spec[:i], strings.TrimLeft(spec[i:], "=<>~!;")
	}
	name, _, _ = strings.Cut(name, "[")
	return lower(name), version
}

// parseImage cuts a container image into its repository and its tag or digest.
func parseImage(ref string) (name, version string) {
	ref, digest, _ := strings.Cut(ref, "@")
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		return lower(ref[:i]), ref[i+1:]
	}
	return lower(ref), digest
}

// moduleStem takes the entry off a module: hermes_cli.main.
func moduleStem(module string) string {
	if i := strings.LastIndexByte(module, '.'); i > 0 && generic[module[i+1:]] {
		return module[:i]
	}
	return module
}
