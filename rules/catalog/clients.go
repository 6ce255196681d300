package catalog

import "strings"

// Conditions that many rows share: what a program is asked for that ends at once, or speaks MCP itself.
const (
	asked    = "  -  --version, --help"
	askedMCP = "  -  mcp, --version, --help"
)

// forkOfVSCode are the rows of an editor made from VS Code: its remote extension host, and the application.
func forkOfVSCode(names ...string) string {
	return "." + names[0] + "-server//bootstrap-fork  --type=extensionHost\n" + strings.Join(names, ", ") + "  (app)"
}

// clients are sorted by name.
var clients = []Client{
	{Name: "5ire", Kind: Desktop, Programs: "5ire  (app)"},
	{Name: "Amazon Q", Kind: Agent, Programs: "q  chat\nqchat" + askedMCP},
	{Name: "Amp", Kind: Agent, Programs: "@sourcegraph/amp, amp" + askedMCP},
	{Name: "Android Studio", Kind: Editor, Programs: "studio, studio64  (app)"},
	{Name: "Antigravity", Kind: Editor, Programs: forkOfVSCode("antigravity")},
	{Name: "AnythingLLM", Kind: Desktop, Programs: "anythingllm, anythingllm-desktop  (app)"},
	{Name: "Auggie", Kind: Agent, Programs: "@augmentcode/auggie, auggie  -  mcp, --mcp, --version, --help"},
	{Name: "BoltAI", Kind: Desktop, Programs: "boltai  (app)"},
	{Name: "ChatGPT", Kind: Desktop, Programs: "chatgpt  (app)"},
	{Name: "ChatWise", Kind: Desktop, Programs: "chatwise  (app)"},
	{Name: "Cherry Studio", Kind: Desktop, Programs: "cherry studio, cherry-studio, cherrystudio  (app)"},
	{
		Name: "Claude Code", Kind: Agent,
		Programs: "@anthropic-ai/claude-code, claude, claude-code" +
			"  -  mcp, update, install, doctor, plugin, config, auth, setup-token, --version, --help",
		ConfigFlags:    []string{"--mcp-config"},
		nonInteractive: []string{"-p", "--print", "--input-format", "--output-format"},
	},
	{Name: "Claude Desktop", Kind: Desktop, Programs: "claude-desktop, anthropicclaude//claude, claude.app//claude, claude_//claude  (app)"},
	{Name: "Cline", Kind: Agent, Programs: "cline  -  mcp, auth, config, --version, --help"},
	{Name: "CodeBuddy", Kind: Editor, Programs: `
		.codebuddy-server//bootstrap-fork  --type=extensionHost
		codebuddy cn  (app)
		@tencent-ai/codebuddy-code  -  mcp
		codebuddy  -  mcp, --type`},
	{
		Name: "Codex", Kind: Agent,
		Programs: `
			@openai/codex, codex  -  mcp, mcp-server, login, logout, completion, --version, --help
			codex.app//codex, openai.codex//codex  -  mcp, mcp-server, --type`,
		nonInteractive: []string{"exec", "app-server"}, // its -p is a profile
	},
	{Name: "Continue", Kind: Agent, Programs: "@continuedev/cli, cn" + asked},
	{Name: "Copilot CLI", Kind: Agent, Programs: "@github/copilot, copilot" + asked},
	{Name: "Crush", Kind: Agent, Programs: "@charmland/crush\ncrush" + asked},
	{Name: "Cursor", Kind: Editor, Programs: forkOfVSCode("cursor") + "\ncursor-agent  -  mcp, login, logout, update, --version, --help"},
	{Name: "Factory droid", Kind: Agent, Programs: "droid" + askedMCP},
	{Name: "Gemini CLI", Kind: Agent, Programs: "@google/gemini-cli, gemini, gemini-cli  -  mcp, extensions, --version, --help"},
	{Name: "Goose", Kind: Agent, Programs: `
		block.goose  (app)
		goose  session, run, web, acp, serve, recipe, schedule
		goosed`},
	{Name: "Grok CLI", Kind: Agent, Programs: "@vibe-kit/grok-cli  -  mcp\ngrok" + askedMCP},
	{Name: "hermes-agent", Kind: Daemon, Programs: `
		hermes  -  mcp, config, update, start, health-check, keys, tx, query, -O, -emit-binary, --version, --help
		hermes-agent  -  mcp, config, update
		hermes_cli  -  mcp, config, update, --version, --help`},
	{Name: "iFlow", Kind: Agent, Programs: "@iflow-ai/iflow-cli, iflow  -  mcp"},
	{Name: "Jan", Kind: Desktop, Programs: "jan  (app)"},
	{Name: "JetBrains", Kind: Editor, Programs: `
		clion, clion64, datagrip, datagrip64, goland, goland64, idea, idea64, phpstorm, phpstorm64, pycharm, pycharm64  (app)
		rider, rider64, rubymine, rubymine64, rustrover, rustrover64, webstorm, webstorm64  (app)
		com.intellij.idea.main, junie`},
	{Name: "Kilo", Kind: Agent, Programs: "@kilocode/cli, kilocode  -  mcp"},
	{Name: "Kimi", Kind: Agent, Programs: "kimi, kimi-cli" + askedMCP},
	{Name: "Kiro", Kind: Editor, Programs: forkOfVSCode("kiro")},
	{Name: "Kiro CLI", Kind: Agent, Programs: "kiro-cli  -  mcp, login, --version, --help\nkiro-cli-chat  -  mcp"},
	{Name: "Letta", Kind: Daemon, Programs: "letta  server"},
	{Name: "LibreChat", Kind: Daemon, Programs: "librechat//api"},
	{Name: "LM Studio", Kind: Desktop, Programs: "lm studio, lm-studio  (app)"},
	{Name: "mcp-agent", Kind: Agent, Programs: "mcp-agent"},
	{Name: "MCPHost", Kind: Agent, Programs: "mcphost"},
	{Name: "mcporter", Kind: Agent, Programs: "mcporter  -  list, config, generate-cli, --version, --help"},
	{Name: "Mistral Vibe", Kind: Agent, Programs: "mistral-vibe\nvibe" + asked},
	{Name: "Msty", Kind: Desktop, Programs: "msty  (app)"},
	{Name: "n8n", Kind: Daemon, Programs: "n8n" + asked},
	{Name: "Open WebUI", Kind: Daemon, Programs: "open-webui  serve\nuvicorn  open_webui.main:app"},
	{Name: "openclaw", Kind: Daemon, Programs: `
		clawdbot, moltbot  gateway
		openclaw  -  mcp, config, doctor, --version, --help
		openclaw-gateway`},
	{Name: "opencode", Kind: Agent, Programs: "opencode, opencode-ai  -  mcp, auth, upgrade, models, --version, --help"},
	{Name: "OpenHands", Kind: Agent, Programs: "openhands  -  mcp"},
	{Name: "oterm", Kind: Agent, Programs: "oterm"},
	{Name: "PearAI", Kind: Editor, Programs: "pearai  (app)"},
	{Name: "Qoder", Kind: Editor, Programs: forkOfVSCode("qoder")},
	{Name: "Qwen Code", Kind: Agent, Programs: "@qwen-code/qwen-code, qwen" + askedMCP},
	{Name: "Raycast", Kind: Desktop, Programs: "raycast  (app)"},
	{Name: "Trae", Kind: Editor, Programs: forkOfVSCode("trae", "trae cn")},
	{Name: "Void", Kind: Editor, Programs: "void  (app)"},
	{Name: "VS Code", Kind: Editor, Programs: `
		bootstrap-fork  --type=extensionHost
		code, code - insiders, code-insiders, code-oss, codium, vscodium  (app)
		visual studio code, visual studio code - insiders  (app)
		extensionhostprocess`},
	{Name: "Warp", Kind: Desktop, Programs: "warp, warp-terminal  (app)"},
	{Name: "Windsurf", Kind: Editor, Programs: forkOfVSCode("windsurf", "windsurf-next")},
	{Name: "Witsy", Kind: Desktop, Programs: "witsy  (app)"},
	{Name: "WorkBuddy", Kind: Editor, Programs: "workbuddy  (app)"},
	{Name: "Zed", Kind: Editor, Programs: "zed, zed-preview, zeditor  (app)\nzed-editor"},
}
