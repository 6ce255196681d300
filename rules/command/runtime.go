package command

import "strings"

// runtime is an interpreter, and how it is told what to run.
type Runtime struct {
	name string

	// values are options that are followed by a value; codes those that are followed by the
	// program's own text, after which there is nothing to name.
	values, codes string

	module string // the option that names a module: python -m, java -cp X Class
	file   string // the option that names a file: java -jar

	// runs are sub-commands that run a script; tools those that do something else.
	runs, tools string
}

// Options are kept as text with a space around each, so that a look-up is a search.
var runtimes = map[string]*Runtime{
	"node": {
		name:   "node",
		values: " -r --require --import --loader --experimental-loader -C --conditions --title --env-file --icu-data-dir --openssl-config --inspect-port ",
		codes:  " -e --eval -p --print -pe -c --check --run --test -i --interactive --v8-options ",
	},
	"python": {
		name: "python", values: " -X -W -Q --check-hash-based-pycs ", codes: " -c ", module: "-m",
	},
	"bun": {
		name: "bun", values: " --cwd --config -c --env-file -r --preload --define -d --conditions --port --tsconfig-override --elide-lines ",
		codes: " -e --eval -p --print ", runs: " run ",
		tools: " add audit build create exec init install i link outdated patch pm publish remove rm test unlink update upgrade why repl ",
	},
	"deno": {
		name: "deno", values: " -c --config --import-map --lock --location --seed --cert -L --log-level --env-file --ext ", codes: " -e --eval ",
		runs: " run serve ", tools: " add bench bundle cache check clean compile completions coverage doc eval fmt info init install i jupyter lint lsp " +
			"outdated publish remove repl task test types uninstall update upgrade vendor ",
	},
	"java": {
		name: "java", values: " -cp -classpath --class-path -p --module-path --add-modules --add-opens --add-exports --add-reads --source ",
		module: "", file: "-jar",
	},
	"dotnet": {
		name: "dotnet", values: " --additionalprobingpath --fx-version --roll-forward --depsfile --runtimeconfig --additional-deps ", runs: " exec ",
		tools: " add build clean format fsi help list msbuild new nuget pack publish remove restore sdk sln store test tool vstest watch workload dev-certs user-secrets ",
	},
	"ruby": {name: "ruby", values: " -I -r -C -E -W ", codes: " -e "},
	"php":  {name: "php", values: " -c -d -z -f ", codes: " -r -S -a -i "},
	"perl": {name: "perl", values: " -I ", codes: " -e -E -ne -pe -i "},
	"lua":  {name: "lua", values: " -l ", codes: " -e "},
	"r":    {name: "r", codes: " -e "},
}

var runtimeNames = map[string]string{
	"node": "node", "nodejs": "node", "bun": "bun", "deno": "deno", "java": "java", "javaw": "java", "dotnet": "dotnet", "ruby": "ruby", "php": "php",
	"perl": "perl", "lua": "lua", "luajit": "lua", "rscript": "r", "jruby": "ruby", "py": "python", "pyw": "python", "uvx-python": "python",
}

// runtimeOf returns the interpreter of that name; nil when it is none.
func RuntimeOf(name string) *Runtime {
	if canonical, ok := runtimeNames[name]; ok {
		return runtimes[canonical]
	}
	for _, prefix := range [...]string{"python", "pypy", "node", "ruby", "php"} { // python3.12, pypy3, node20, ruby3.2
		if version, ok := strings.CutPrefix(name, prefix); ok && strings.Trim(version, "0123456789.tw-d") == "" {
			if prefix == "pypy" {
				prefix = "python"
			}
			return runtimes[prefix]
		}
	}
	return nil
}

// has tells that a list of options has this one.
func has(list, option string) bool {
	if option == "" || strings.IndexByte(option, ' ') >= 0 {
		return false
	}
	for {
		i := strings.Index(list, option)
		if i < 0 {
			return false
		}
		if end := i + len(option); i > 0 && list[i-1] == ' ' && list[end] == ' ' {
			return true
		}
		list = list[i+1:]
	}
}

// interpret finds what an interpreter runs.
func (l *Line) interpret(r *Runtime, c *Command) {
	c.Runtime = r.name
	if project := projectOf(l.Words[0]); project != "" {
		l.folder = project
	}
	words := l.Words[1:]
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "" || w == "-":
			return // the program comes from standard input
		case w == "--":
			if i+1 < len(words) {
				l.script(r.name, words[i+1:], c)
			}
			return
		case has(r.codes, w):
			return
		case r.file != "" && w == r.file:
			if i+1 < len(words) {
				l.script(r.name, words[i+1:], c)
				c.Program = stripJar(c.Program)
			}
			return
		case w[0] == '-' && r.module != "" && moduleOption(w):
			if i+1 < len(words) {
				c.Kind, c.Program, c.Args = KindModule, Lower(words[i+1]), words[i+2:]
			}
			return
		case w[0] == '-' && r.module != "" && len(w) > 2 && w[1] != '-' && w[len(w)-1] == 'c':
			return // python -Ic 'code'
		case has(r.values, w):
			i++
		case w[0] == '-':
		case has(r.runs, w):
			r = r.script()
		case has(r.tools, w):
			return
		case r.name == "java":
			c.Kind, c.Program, c.Args = KindModule, Lower(w), words[i+1:]
			return
		default:
			l.script(r.name, words[i:], c)
			return
		}
	}
}

// projectOf returns the project whose own interpreter this is: /src/x-mcp/.venv/bin/python.
func projectOf(interpreter string) string {
	if i := strings.LastIndex(interpreter, ".venv"); i > 1 {
		return interpreter[:i-1]
	}
	return ""
}

// script is the interpreter once a sub-command has told that a script follows, which may be called
// like one.
func (r *Runtime) script() *Runtime {
	bare := *r
	bare.runs, bare.tools = "", ""
	return &bare
}

// moduleOption tells that a Python option is -m, alone or after others: -um.
func moduleOption(w string) bool {
	return len(w) > 1 && w[1] != '-' && w[len(w)-1] == 'm' && strings.Trim(w[1:], "bBdEhiIOPqsSuvxm") == ""
}

// stripJar takes version and flavour off the name of a Java archive: x-mcp-1.0.0-SNAPSHOT-runner.
func stripJar(name string) string {
	for i := 1; i+1 < len(name); i++ {
		if name[i] == '-' && name[i+1] >= '0' && name[i+1] <= '9' {
			return name[:i]
		}
	}
	for _, flavour := range [...]string{"-all", "-runner", "-fat", "-shaded", "-jar-with-dependencies"} {
		name = strings.TrimSuffix(name, flavour)
	}
	return name
}
