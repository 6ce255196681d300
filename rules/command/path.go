package command

import (
	"path"
	"strings"

	"mcpdoctor/rules/catalog"
)

// Paths may have both separators on every system: Windows programs run under WSL, and reports are read elsewhere.

// LastSegment returns what follows the last separator of a path.
func LastSegment(p string) string { return p[strings.LastIndexAny(p, `/\`)+1:] }

// IsPath reports whether a word has a separator.
func IsPath(word string) bool {
	return strings.IndexByte(word, '/') >= 0 || strings.IndexByte(word, '\\') >= 0
}

// IsAbsolute reports whether a path is absolute on any system.
func IsAbsolute(p string) bool { return strings.HasPrefix(p, "/") || isWindowsPath(p) }

// CleanPath makes a path comparable: forward slashes, no "x/../".
func CleanPath(p string) string {
	p = strings.ReplaceAll(p, `\`, "/")
	if strings.Contains(p, "/./") || strings.Contains(p, "/../") {
		return path.Clean(p)
	}
	return p
}

// Parents returns the nearest folders of a path, the nearest first. Deep folders name nothing.
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

// ProgramName is the name by which the first word of a line is looked up: its last segment in lower case, without
// the extension of a program and the dash of a login shell. Where that says nothing, a folder names the program.
func ProgramName(word string) string {
	name := strings.TrimPrefix(LastSegment(word), "-")
	if name == "" {
		name = word
	}
	name = trimExecutable(strings.ToLower(name))
	switch {
	case name == "electron" && strings.Contains(word, ".app/"): // VS Code on macOS
		bundle := word[:strings.LastIndex(word, ".app/")]
		return strings.ToLower(LastSegment(bundle))
	case IsPath(word) && isVersion(name): // ~/.local/share/claude/versions/2.1.30
		for _, dir := range Parents(word) {
			if dir = strings.ToLower(dir); dir != "versions" && !isVersion(dir) {
				return dir
			}
		}
	}
	// On macOS "Cursor Helper (Plugin)" runs extensions, as Cursor itself does elsewhere. Other helpers draw.
	return strings.TrimSuffix(name, " helper (plugin)")
}

// isVersion reports whether a name is a version and no more: 1.2, v2.1.30, 3.0.1-beta.
func isVersion(name string) bool {
	if i := strings.IndexAny(name, "-+_"); i >= 0 {
		name = name[:i]
	}
	major, minor, ok := strings.Cut(strings.TrimPrefix(name, "v"), ".")
	const digits = "0123456789"
	return ok && major != "" && strings.Trim(major, digits) == "" &&
		minor != "" && minor[0] != '.' && strings.Trim(minor, digits+".") == ""
}

// trimExecutable removes the extensions of programs.
func trimExecutable(name string) string {
	if n := len(name) - 4; n > 0 {
		switch name[n:] {
		case ".exe", ".cmd", ".bat", ".com", ".ps1":
			return name[:n]
		}
	}
	return name
}

// scriptRuntimes are the extensions of scripts and what runs them; empty for a shell.
var scriptRuntimes = map[string]string{
	".js": "node", ".mjs": "node", ".cjs": "node", ".ts": "node", ".mts": "node", ".cts": "node", ".jsx": "node", ".tsx": "node",
	".py": "python", ".pyw": "python", ".pyz": "python", ".jar": "java", ".dll": "dotnet", ".rb": "ruby", ".php": "php", ".pl": "perl",
	".lua": "lua", ".r": "r", ".jl": "julia", ".sh": "", ".bash": "", ".zsh": "",
}

// extensionOf returns the extension of a script in lower case; empty for all other files.
func extensionOf(p string) string {
	name := LastSegment(p)
	if i := strings.LastIndexByte(name, '.'); i > 0 && len(name)-i <= len(".bash") {
		extension := strings.ToLower(name[i:])
		if _, ok := scriptRuntimes[extension]; ok {
			return extension
		}
	}
	return ""
}

// IsScript reports whether a path has the extension of a script.
func IsScript(p string) bool { return extensionOf(p) != "" }

// BaseName is the last segment of a path without the extension of a script or program.
func BaseName(p string) string {
	name := trimExecutable(LastSegment(p))
	return trimExecutable(name[:len(name)-len(extensionOf(name))])
}

// Stem is the base name of a path in lower case.
func Stem(p string) string { return trimExecutable(strings.ToLower(BaseName(p))) }

var (
	// generalNames say less than the name of the folder or package.
	generalNames = catalog.Words("__main__ _ . app bin bundle cli entry entrypoint index launch main mod run server start stdio serve program")

	// generalFolders hold programs without naming them.
	generalFolders = catalog.Words(". .. app bin build cjs code debug dist esm home lib opt out release root server src srv target tmp usr workspace")
)

// parseScript names a script by its package, by itself, or by the folder whose main script it is.
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
			module, _, _ := strings.Cut(p[i+len(packages):], "/")
			return KindModule, Stem(module)
		}
	}
	name := Stem(p)
	dirs := Parents(p)
	if !IsScript(p) && len(dirs) > 0 && (dirs[0] == "bin" || strings.EqualFold(dirs[0], "Scripts")) {
		return KindPackage, strings.TrimSuffix(name, "-script") // installed by npm, pip or uv
	}
	if generalNames[name] || name == "" {
		for _, dir := range dirs {
			if dir = strings.ToLower(dir); !generalFolders[dir] && !isVersion(dir) {
				return KindScript, dir
			}
		}
	}
	return KindScript, name
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
	name = strings.ToLower(name)
	if IsScript(name) && inside == "" {
		return Stem(name)
	}
	// Some packages have several servers, each with a script of its own.
	if script := Stem(inside); strings.HasSuffix(script, "-server") && essence(script) != essence(name) {
		return name + "/" + script
	}
	return name
}

// CutSpecifier removes the registry from a specifier of Deno: npm:x, jsr:x. It returns false if there is none.
func CutSpecifier(word string) (string, bool) {
	for _, registry := range [...]string{"npm:", "jsr:"} {
		if rest, ok := strings.CutPrefix(word, registry); ok {
			return strings.TrimPrefix(rest, "/"), true
		}
	}
	return word, false
}

// parsePackage splits what npm, pip and uv take for a package into name and version: @scope/x@1.2, x==0.2.6,
// x[extra]>=1, git+https://host/owner/x@main.
func parsePackage(spec string) (name, version string) {
	spec, _ = CutSpecifier(spec)
	if strings.Contains(spec, "://") || strings.HasPrefix(spec, "git+") || strings.HasPrefix(spec, "github:") {
		spec, _, _ = strings.Cut(spec, "#")
		name, version, _ = strings.Cut(LastSegment(strings.TrimRight(spec, "/")), "@")
		return strings.ToLower(strings.TrimSuffix(name, ".git")), version
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
	return strings.ToLower(name), version
}

// parseImage splits the name of a container image into its repository and its tag or digest.
func parseImage(ref string) (name, version string) {
	ref, digest, _ := strings.Cut(ref, "@")
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		return strings.ToLower(ref[:i]), ref[i+1:]
	}
	return strings.ToLower(ref), digest
}

// ModuleStem removes a general last part from the name of a module: hermes_cli.main.
func ModuleStem(module string) string {
	if i := strings.LastIndexByte(module, '.'); i > 0 && generalNames[module[i+1:]] {
		return module[:i]
	}
	return module
}
