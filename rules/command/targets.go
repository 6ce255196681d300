package command

import "strings"

// GatewayTargets returns the commands that a gateway was told to start, each as a line of shell for
// [ResolveLine]. Nil when they are in a configuration file, or when the line does not say (pm2 cuts
// the command lines of its jobs).
func (c Command) GatewayTargets() []string {
	switch Canonical(c.Program) {
	case "supergateway":
		return c.SupergatewayTargets()
	case "mcp-proxy":
		return c.proxyTargets()
	case "mcpo":
		return c.commandAfter(mcpoValues)
	case "mcp-inspector":
		if command, ok := c.Flag("--command"); ok { // the inspector's own second process
			args, _ := c.Flag("--args")
			return []string{strings.TrimSpace(command + " " + args)}
		}
		return c.commandAfter(" -e --config --server --transport --server-url --header ")
	}
	for i, arg := range c.Args {
		if arg == "--" && i+1 < len(c.Args) {
			return []string{QuoteLine(c.Args[i+1:])}
		}
	}
	return nil
}

// supergatewayFlags end the value of --stdio where the vector was cut at its spaces.
const supergatewayFlags = " --stdio --sse --streamableHttp --port --baseUrl --ssePath --messagePath --streamableHttpPath --outputTransport --logLevel " +
	"--cors --healthEndpoint --header --oauth2Bearer --stateful --sessionTimeout --protocolVersion "

func (c Command) SupergatewayTargets() []string {
	for i, arg := range c.Args {
		if value, ok := strings.CutPrefix(arg, "--stdio="); ok {
			return []string{value}
		}
		if arg != "--stdio" || i+1 == len(c.Args) {
			continue
		}
		words := c.Args[i+1:]
		if strings.IndexByte(words[0], ' ') >= 0 {
			return []string{words[0]} // the vector is whole
		}
		n := 0
		for n < len(words) && !has(supergatewayFlags, flagName(words[n])) {
			n++
		}
		if n == 0 {
			return nil
		}
		return []string{strings.Join(words[:n], " ")}
	}
	return nil
}

// The options of the two programs called mcp-proxy, and of mcpo, that are followed by a value.
const (
	proxyValues = " --port --host --sse-port --sse-host --transport --cwd --allow-origin --named-server-config --client-id --client-secret " +
		"--token-url --log-level --endpoint --server --sseEndpoint --streamEndpoint --apiKey --requestTimeout --sessionIdleTimeout --connectionTimeout "
	proxyPairs = " -e --env -H --headers "
	mcpoValues = " --port -p --host -h --api-key -k --env -e --env-path --cors-allow-origins --name -n --description -d --version -v " +
		"--ssl-certfile -t --ssl-keyfile --server-type --type --config -c --header --path-prefix --root-path --log-level "
)

func (c Command) proxyTargets() (targets []string) {
	for i := 0; i < len(c.Args); i++ {
		switch arg := c.Args[i]; {
		case arg == "--":
			if i+1 < len(c.Args) {
				targets = append(targets, QuoteLine(c.Args[i+1:]))
			}
			return targets
		case arg == "--named-server":
			if i+2 < len(c.Args) {
				targets = append(targets, c.Args[i+2])
			}
			i += 2
		case has(proxyPairs, arg):
			i += 2
		case has(proxyValues, arg):
			i++
		case strings.HasPrefix(arg, "-"):
		case strings.Contains(arg, "://"):
			return targets // it is a client of another server
		default:
			return append(targets, QuoteLine(c.Args[i:]))
		}
	}
	return targets
}

// commandAfter returns what follows a gateway's own options.
func (c Command) commandAfter(values string) []string {
	for i := 0; i < len(c.Args); i++ {
		switch arg := c.Args[i]; {
		case arg == "--":
			if i+1 < len(c.Args) {
				return []string{QuoteLine(c.Args[i+1:])}
			}
			return nil
		case has(values, arg):
			i++
		case strings.HasPrefix(arg, "-"):
		case strings.Contains(arg, "://"):
			return nil
		default:
			return []string{QuoteLine(c.Args[i:])}
		}
	}
	return nil
}

func flagName(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return name
}

// quoteLine writes words as a line of shell that reads back as the same words.
func QuoteLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"`$&|;<>()#*?!~") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted[i] = w
	}
	return strings.Join(quoted, " ")
}
