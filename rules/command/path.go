package command

import (
	"path"
	"strings"
)

// Paths: from where a program lies to what it is called. Both separators are known on every
// system, since Windows programs run under WSL and reports are read elsewhere.

// lastSegment of a path, as it is written.
func LastSegment(p string) string {
	return p[strings.LastIndexAny(p, `/\`)+1:]
}

func IsPath(word string) bool {
	return strings.IndexByte(word, '/') >= 0 || strings.IndexByte(word, '\\') >= 0
}

// foldName is the name that a first word is looked up by: its last segment in lower case, without
// the extension of a program and without a log-in shell's dash.
func FoldName(word string) string {
	name := strings.TrimPrefix(LastSegment(word), "-")
	if name == "" {
		name = word
	}
	name = trimExecutable(Lower(name))
	switch {
	case strings.Contains(name, " helper"):
		// macOS: "Cursor Helper (Plugin)" is Cursor; the other helpers draw and are left alone.
		if main, ok := strings.CutSuffix(name, " helper (plugin)"); ok {
			return main
		}
	case name == "electron" && strings.Contains(word, ".app/"):
		// VS Code's program is called Electron; its bundle has the name.
		bundle := word[:strings.LastIndex(word, ".app/")]
		return Lower(LastSegment(bundle))
	case isVersion(name) && IsPath(word):
		// ~/.local/share/claude/versions/2.1.30
		for _, dir := range Parents(word) {
			if dir = Lower(dir); dir != "versions" && !isVersion(dir) {
				return dir
			}
		}
	}
	return name
}

// lower is strings.ToLower for names, which seldom need it.
func Lower(s string) string {
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
func Extension(name string) string {
	if i := strings.LastIndexByte(name, '.'); i > 0 && len(name)-i <= 5 {
		if _, ok := scriptRuntimes[Lower(name[i:])]; ok {
			return name[i:]
		}
	}
	return ""
}

func IsScript(word string) bool { return Extension(LastSegment(word)) != "" }

// runtimeOfScript returns what runs a script that was started by its own name.
func runtimeOfScript(word string) string {
	return scriptRuntimes[Lower(Extension(LastSegment(word)))]
}

// stem is a path's last segment in lower case, without the extensions of scripts and programs.
func Stem(p string) string {
	name := trimExecutable(LastSegment(p))
	name = strings.TrimSuffix(name, Extension(name))
	return trimExecutable(Lower(name))
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
	if rest, ok := CutSpecifier(p); ok { // deno run npm:@scope/x-mcp
		name, _ := parsePackage(rest)
		return KindPackage, name
	}
	p = CleanPath(p)
	if i := strings.LastIndex(p, "node_modules/"); i >= 0 {
		return KindPackage, nodePackage(p[i+len("node_modules/"):])
	}
	for _, packages := range [...]string{"site-packages/", "dist-packages/"} {
		if i := strings.LastIndex(p, packages); i >= 0 {
			return KindModule, pythonModule(p[i+len(packages):])
		}
	}
	name := Stem(p)
	dirs := Parents(p)
	if Extension(p) == "" && len(dirs) > 0 && (dirs[0] == "bin" || strings.EqualFold(dirs[0], "Scripts")) {
		return KindPackage, strings.TrimSuffix(name, "-script") // what npm -g, pip or uv have installed
	}
	if generic[name] {
		if dir := telling(dirs); dir != "" {
			return KindScript, Lower(dir)
		}
	}
	return KindScript, name
}

// telling returns the nearest folder whose name says something.
func telling(dirs []string) string {
	for _, dir := range dirs {
		if !storage[Lower(dir)] && !isVersion(dir) {
			return dir
		}
	}
	return ""
}

// nodePackage names the package of a path below node_modules.
func nodePackage(p string) string {
	if bin, ok := strings.CutPrefix(p, ".bin/"); ok {
		return Stem(bin)
	}
	name, inside, _ := strings.Cut(p, "/")
	if strings.HasPrefix(name, "@") {
		var base string
		base, inside, _ = strings.Cut(inside, "/")
		name += "/" + base
	}
	name = Lower(name)
	if Extension(name) != "" && inside == "" {
		return Stem(name)
	}
	// Some packages hold several servers, each with a script of its own.
	if script := Stem(inside); strings.HasSuffix(script, "-server") && Essence(script) != Essence(name) {
		return name + "/" + script
	}
	return name
}

func pythonModule(p string) string {
	name, _, _ := strings.Cut(p, "/")
	return Stem(name)
}

// cleanPath makes a path comparable: forward slashes, no "x/../".
func CleanPath(p string) string {
	p = strings.ReplaceAll(p, `\`, "/")
	if strings.Contains(p, "/./") || strings.Contains(p, "/../") {
		return path.Clean(p)
	}
	return p
}

// parents returns the folders of a path, the nearest first. Deep folders name nothing, so that a
// few are enough.
func Parents(p string) []string {
	var dirs []string
	for range 8 {
		i := strings.LastIndexAny(p, `/\`)
		if i < 0 {
			break
		}
		p = p[:i]
		if dir := LastSegment(p); dir != "" && !strings.HasSuffix(dir, ":") {
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
func CutSpecifier(word string) (string, bool) {
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
	spec, _ = CutSpecifier(spec)
	if strings.Contains(spec, "://") || strings.HasPrefix(spec, "git+") || strings.HasPrefix(spec, "github:") {
		spec, _, _ = strings.Cut(spec, "#")
		spec = strings.TrimRight(spec, "/")
		spec = LastSegment(spec)
		name, version, _ = strings.Cut(spec, "@")
		return Lower(strings.TrimSuffix(name, ".git")), version
	}
	if IsPath(spec) && !strings.HasPrefix(spec, "@") {
		name, version, _ = strings.Cut(LastSegment(spec), "@")
		return Stem(name), version
	}
	name = spec
	if i := strings.LastIndexByte(spec, '@'); i > 0 {
		name, version = spec[:i], spec[i+1:]
	} else if i := strings.IndexAny(spec, "=<>~!;"); i > 0 {
		name, version = spec[:i], strings.TrimLeft(spec[i:], "=<>~!;")
	}
	name, _, _ = strings.Cut(name, "[")
	return Lower(name), version
}

// parseImage cuts a container image into its repository and its tag or digest.
func parseImage(ref string) (name, version string) {
	ref, digest, _ := strings.Cut(ref, "@")
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		return Lower(ref[:i]), ref[i+1:]
	}
	return Lower(ref), digest
}

// moduleStem takes the entry off a module: hermes_cli.main.
func ModuleStem(module string) string {
	if i := strings.LastIndexByte(module, '.'); i > 0 && generic[module[i+1:]] {
		return module[:i]
	}
	return module
}
