package scan

import (
	"bytes"
	"slices"
)

// envNames are the environment variables that a snapshot may contain: those that name the program that started
// a process, or its service manager. None holds a secret. They are inherited, so that none proves by itself what
// a process belongs to now.
//
// "name" is pm2's name for its app; it is too common a word to be read without "pm_id" next to it.
var envNames = []string{
	// Clients.
	"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", // Claude Code
	"CODEX_MANAGED_BY_BUN", "CODEX_MANAGED_BY_NPM", "CODEX_SANDBOX", // Codex
	"CURSOR_AGENT", "CURSOR_TRACE_ID", // Cursor
	"ELECTRON_RUN_AS_NODE",     // a desktop application that runs its own Node
	"GEMINI_CLI",               // Gemini CLI
	"HERMES_MCP_PARENT_PID",    // hermes-agent: the client's PID
	"OPENCODE",                 // opencode
	"VSCODE_CWD", "VSCODE_PID", // VS Code and what is built from it

	// Daemons that outlive their clients by design.
	"CODEGRAPH_DAEMON_INTERNAL",

	// Terminals and multiplexers.
	"STY", "TERM_PROGRAM", "TMUX",

	// Launchers.
	"npm_config_user_agent",        // npm, pnpm, yarn or bun, with version
	"npm_lifecycle_event",          // "npx", or the script of package.json
	"UV", "UV_RUN_RECURSION_DEPTH", // uv, uvx

	// Service managers.
	"INVOCATION_ID", "MANAGERPID", "SYSTEMD_EXEC_PID", // systemd
	"PM2_HOME", "name", "pm_id", // pm2
	"SUPERVISOR_ENABLED", "SUPERVISOR_GROUP_NAME", "SUPERVISOR_PROCESS_NAME", // supervisord
	"XPC_SERVICE_NAME", // launchd
}

// maxEnvValue is the longest value that is kept: more than any path among them needs.
const maxEnvValue = 1 << 10

// chooseEnv keeps the variables in envNames of an environment, entries "NAME=value" separated by NULs; the first of
// each name, as getenv(3) does. It returns nil when there are none.
func chooseEnv(environ []byte) map[string]string {
	var env map[string]string
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		name, value, ok := bytes.Cut(entry, []byte("="))
		if !ok || !slices.Contains(envNames, string(name)) || len(value) > maxEnvValue {
			continue
		}
		if _, seen := env[string(name)]; seen {
			continue
		}
		if env == nil {
			env = make(map[string]string)
		}
		env[string(name)] = string(value)
	}
	if _, pm2 := env["pm_id"]; !pm2 {
		delete(env, "name")
	}
	if len(env) == 0 {
		return nil
	}
	return env
}
