package command

import (
	"regexp"
	"strings"
	"sync"

	"mcpdoctor/rules/catalog"
)

// interpreter is a program that runs scripts, and how it is called.
type interpreter struct {
	name string

	// values are the options with a value in the next word; codes are those with the program itself, or with no
	// program at all.
	values, codes map[string]bool

	module bool   // -m names a module
	file   string // the option that names a file: java -jar

	// runs are sub-commands that run a script; tools are those that do something else.
	runs, tools map[string]bool
}

var interpreters = map[string]*interpreter{
	"node": {
		name: "node",
		values: catalog.Words("-r --require --import --loader --experimental-loader -C --conditions --title --env-file --icu-data-dir --openssl-config " +
			"--inspect-port"),
		codes: catalog.Words("-e --eval -p --print -pe -c --check --run --test -i --interactive --v8-options"),
	},
	"python": {name: "python", values: catalog.Words("-X -W -Q --check-hash-based-pycs"), codes: catalog.Words("-c"), module: true},
	"bun": {
		name:   "bun",
		values: catalog.Words("--cwd --config -c --env-file -r --preload --define -d --conditions --port --tsconfig-override --elide-lines"),
		codes:  catalog.Words("-e --eval -p --print"),
		runs:   catalog.Words("run"),
		tools:  catalog.Words("add audit build create exec init install i link outdated patch pm publish remove rm test unlink update upgrade why repl"),
	},
	"deno": {
		name:   "deno",
		values: catalog.Words("-c --config --import-map --lock --location --seed --cert -L --log-level --env-file --ext"),
		codes:  catalog.Words("-e --eval"),
		runs:   catalog.Words("run serve"),
		tools: catalog.Words("add bench bundle cache check clean compile completions coverage doc eval fmt info init install i jupyter lint lsp outdated " +
			"publish remove repl task test types uninstall update upgrade vendor"),
	},
	"java": {
		name:   "java",
		values: catalog.Words("-cp -classpath --class-path -p --module-path --add-modules --add-opens --add-exports --add-reads --source"),
		file:   "-jar",
	},
	"dotnet": {
		name:   "dotnet",
		values: catalog.Words("--additionalprobingpath --fx-version --roll-forward --depsfile --runtimeconfig --additional-deps"),
		runs:   catalog.Words("exec"),
		tools: catalog.Words("add build clean format fsi help list msbuild new nuget pack publish remove restore sdk sln store test tool vstest watch " +
			"workload dev-certs user-secrets"),
	},
	"ruby":    {name: "ruby", values: catalog.Words("-I -r -C -E -W"), codes: catalog.Words("-e")},
	"php":     {name: "php", values: catalog.Words("-c -d -z -f"), codes: catalog.Words("-r -S -a -i")},
	"perl":    {name: "perl", values: catalog.Words("-I"), codes: catalog.Words("-e -E -ne -pe -i")},
	"lua":     {name: "lua", values: catalog.Words("-l"), codes: catalog.Words("-e")},
	"rscript": {name: "r", codes: catalog.Words("-e")},
}

// otherNames are those under which interpreters are started, besides their own with a version.
var otherNames = map[string]string{
	"nodejs": "node", "javaw": "java", "luajit": "lua", "jruby": "ruby", "pypy": "python", "py": "python", "pyw": "python", "uvx-python": "python",
}

// runtimeOf returns the interpreter of that name, which may have a version: python3.12, pypy3, node20, pythonw. It
// returns nil if there is none.
func runtimeOf(name string) *interpreter {
	for _, n := range [...]string{name, strings.TrimRight(name, "0123456789.-dtw")} {
		if r := interpreters[n]; r != nil {
			return r
		}
		if r := interpreters[otherNames[n]]; r != nil {
			return r
		}
	}
	return nil
}

// IsRuntime reports whether a name is that of an interpreter.
func IsRuntime(name string) bool { return runtimeOf(name) != nil }

// isModuleOption reports whether an option of Python names a module: -m, -um.
func isModuleOption(w string) bool {
	return strings.HasPrefix(w, "-") && strings.HasSuffix(w, "m") && strings.Trim(w[1:len(w)-1], "bBdEhiIOPqsSuvx") == ""
}

// isCodeOption reports whether short options of Python end in the one for code: -Ic.
func isCodeOption(w string) bool {
	return len(w) > 2 && w[0] == '-' && w[1] != '-' && w[len(w)-1] == 'c'
}

// interpret finds what an interpreter runs.
func (l *Line) interpret(r *interpreter, c *Command) {
	c.Runtime = r.name
	if i := strings.LastIndex(l.Words[0], ".venv"); i > 1 {
		l.folder = l.Words[0][:i-1] // the project whose own interpreter this is: /src/x-mcp/.venv/bin/python
	}
	words := l.Words[1:]
	subcommand := true // may follow
	for i := 0; i < len(words); i++ {
		w, rest := words[i], words[i+1:]
		switch {
		case w == "", w == "-", r.codes[w], r.module && isCodeOption(w): // stdin, or code
			return
		case w == "--", w == r.file:
			if len(rest) > 0 {
				l.script(r.name, rest, c)
			}
			if w == r.file {
				c.Program = jarSuffix().ReplaceAllString(c.Program, "")
			}
			return
		case r.module && isModuleOption(w):
			if len(rest) > 0 {
				c.Kind, c.Program, c.Args = KindModule, strings.ToLower(rest[0]), rest[1:]
			}
			return
		case r.values[w]:
			i++
		case w[0] == '-':
		case subcommand && r.runs[w]:
			subcommand = false
		case subcommand && r.tools[w]:
			return
		case r.name == "java":
			c.Kind, c.Program, c.Args = KindModule, strings.ToLower(w), rest
			return
		default:
			l.script(r.name, words[i:], c)
			return
		}
	}
}

// jarSuffix is the version, or the variant, in the name of a Java archive: x-mcp-1.0.0-SNAPSHOT-runner.
var jarSuffix = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-\d.*|(-all|-runner|-fat|-shaded|-jar-with-dependencies)+$`)
})
