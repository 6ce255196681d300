package report

import (
	"slices"
	"strings"
	"testing"
)

// Each line holds the word hunter2 or another secret that must not be seen.
func TestRedactTakesSecretsOut(t *testing.T) {
	for _, s := range []string{
		"node server.js --api-key hunter2",
		"node server.js --api-key=hunter2",
		"node server.js --apiKey hunter2 --port 80",
		"node server.js --API_KEY hunter2",
		"x --token 'hunter2' y",
		`x --token "hunter2" y`,
		"npx mcp-remote https://x.example/mcp --header Authorization: Bearer hunter2",
		"supergateway --stdio x-mcp --oauth2Bearer hunter2",
		"npx mcp-remote https://x.example/mcp --header Authorization:hunter2",
		`curl -H "X-Api-Key: hunter2" y`,
		"env OPENAI_API_KEY=hunter2 node x",
		"docker run -i -e GITHUB_PERSONAL_ACCESS_TOKEN=hunter2 img",
		"sh -c 'DB_PASSWORD=hunter2 node x'",
		"mcp-server-postgres postgresql://user:hunter2@db.example/x",
		"mcp-server-postgres postgresql://user:hunter2/with@slash@db.example/x",
		"redis://:hunter2@localhost:6379",
		"https://x.example/mcp?api_key=hunter2&x=1",
		"https://x.example/mcp?x=1&access_token=hunter2",
		`--config {"apiKey":"hunter2","x":1}`,
		`--config {\"token\": \"hunter2\"}`,
		"--password hunter2", "--db-password hunter2", "--client-secret=hunter2", "--auth-token hunter2",
		"SLACK_BOT_TOKEN=hunter2", "AWS_SECRET_ACCESS_KEY=hunter2", "NOTION_KEY=hunter2",
		"x --tavily-key hunter2", "x --openaiKey hunter2", "x --brave-key=hunter2", "x -k hunter2", "mysql -u root -p hunter2 db",
		"docker run -e PGPASSWORD=hunter2 img", "sh -c 'DB_PW=hunter2 node x'", "x --password='one hunter2'", `x --db-password "one hunter2" y`,
		"https://hunter2@github.com/x", "https://x.example/mcp?code=hunter2", "root:hunter2@tcp(h:3306)/x", "x --user u:hunter2", "x -u u:hunter2",
		"x --basic u:hunter2", "x --service-role-key hunter2", "x -DapiKey=hunter2", "x --creds=hunter2", `x --headers '{"X-Foo-Key":"hunter2"}'`,
		"x --otp hunter2", "x -----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----",
		"Cookie: hunter2", "authorization: basic hunter2", "AUTHORIZATION=hunter2",
		`["--api-key", "hunter2"]`, `x --password " hunter2"`, "AUTHORIZATION=Bearer hunter2", "x --password a,hunter2",
	} {
		if got := Redact(s); strings.Contains(got, "hunter2") || !strings.Contains(got, redacted) {
			t.Errorf("%q became %q", s, got)
		}
	}
	for _, token := range []string{
		"ghp_16C7e42F292c6912E7710c838347Ae178B4a", "sk-ant-api03-AbCdEf0123456789AbCdEf", "xoxb-1234567890-abcdefghij",
		"AKIAIOSFODNN7EXAMPLE", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc123DEF456", "github_pat_11ABCDEFG0abcdefghij_klmnop",
		"AIzaSyA1234567890abcdefghijklmnopqrstuv", "hf_AbCdEfGhIjKlMnOp1234", "Zq8xW2nL5vB7kT3mR9pY1cD4fG6hJ0sA",
	} {
		for _, s := range []string{token, "node x " + token, "https://hooks.example/services/T00/" + token, "https://x.example/" + token + "/mcp", "--x=" + token} {
			if got := Redact(s); strings.Contains(got, token) {
				t.Errorf("%q became %q", s, got)
			}
		}
	}
}

func TestRedactLeavesTheRest(t *testing.T) {
	for _, s := range []string{
		"", "node /home/u/.npm/_npx/a3241bba59c344f5/node_modules/.bin/mcp-server-filesystem /tmp",
		"node supergateway --stdio node LAB/servers/mcp-echo.mjs --outputTransport streamableHttp --sessionTimeout 15000 --port 8000",
		"/usr/bin/containerd-shim-runc-v2 -namespace moby -id 75647a32cb8f",
		"docker run -e GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server",
		"docker run -e TOKEN=$TOKEN img", "npm exec @modelcontextprotocol/server-everything@2026.8.31",
		`C:\Users\dev\AppData\Local\npm-cache\_npx\3f1c\node_modules\@azure-devops\mcp\dist\index.js contoso`,
		"--transport http --port 13711 --max-tokens 4000", "https://mcp.example.com/sse", "tcp:127.0.0.1:4001",
		"mcpdoctor reap --older-than 1h --rule orphan", "its environment says that Claude Code started it",
		"the oldest is 3 h 20 min old, the newest 2 min; one every 30 min", "a session that is not closed is kept for ever",
		"mcp-proxy -p 8000 -k /etc/key.pem", "curl -k https://x.example/mcp", "--sort-key name --primary-key id",
		"--key-file /etc/ssl/key.pem", "/nix/store/0c3jyn9gi8pmvhz5qz2ks1l4n5zrjd7a-node-20/bin/node x.js",
		"electron --type=utility --utility-sub-type=node.mojom.NodeService",
		"/home/dev/.cache/ms-playwright/chromium_headless_shell-1200/chrome-linux/headless_shell --user-data-dir=/tmp/playwright_chromiumdev_profile-a1B2c3",
		"chrome --user-data-dir=/tmp/puppeteer_dev_chrome_profile-Ab12Cd", `C:\WINDOWS\system32\svchost.exe -k netsvcs -p -s Schedule`, "svchost -k LocalService",
	} {
		if got := Redact(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestRedactArgs(t *testing.T) {
	in := []string{"node", "x.js", "--api-key", "hunter2", "--token=hunter2", "--port", "80", "--header", "Authorization: Bearer hunter2", "--password", "$PW", "-e", "A_KEY=hunter2", "--token", "--flag"}
	got := redactArgs(in)
	want := []string{"node", "x.js", "--api-key", "***", "--token=***", "--port", "80", "--header", "Authorization: Bearer ***", "--password", "$PW", "-e", "A_KEY=***", "--token", "--flag"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRedactArgsHidesWholeElements(t *testing.T) {
	for _, args := range [][]string{
		{"x", "--password=one hunter2"}, {"x", "--db-password", "one hunter2"}, {"env", "PGPASSWORD=hunter2", "x"}, {"x", "Authorization:", "Bearer", "hunter2"},
		{"x", "password:", "hunter2"}, {"x", "--password", "$2b$10$hunter2"}, {"x", "-u", "me:hunter2"}, {"x", "-p", "hunter2"}, {"x", "--headers", `{"X-Foo-Key":"hunter2"}`},
		{"x", "-----BEGIN", "KEY-----", "hunter2", "-----END", "KEY-----"}, {"x", "-p", "one hunter2/mcp"}, {"x", "--header", "Authorization: Bearer hunter2"},
	} {
		if got := strings.Join(redactArgs(args), " "); strings.Contains(got, "hunter2") {
			t.Errorf("%q became %q", args, got)
		}
	}
	for _, args := range [][]string{{"x", "-p", "8080"}, {"npx", "-p", "@a/b", "c"}, {"x", "-u", "me"}, {"git", "clone", "git@github.com:a/b.git"}, {"x", "--token-file", "/run/token"}, {"x", "-u", "https://host/x"}, {"x", "--token", "${TOKEN}"},
		{"svchost.exe", "-k", "netsvcs"}, {"chrome", "--user-data-dir=/tmp/puppeteer_dev_chrome_profile-Ab12Cd"}} {
		if got := redactArgs(args); !slices.Equal(got, args) {
			t.Errorf("%q became %q", args, got)
		}
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("node x --api-key hunter2")
	f.Add("postgres://u:p@h/d?token=x")
	f.Add(`{"token":"\"`)
	f.Add("\x1b[31m--token\x00 \xff\xfe ://:@ =")
	f.Fuzz(func(t *testing.T, s string) {
		out := Line(s)
		for _, r := range out {
			if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x202e {
				t.Fatalf("%q became %q, which a terminal obeys", s, out)
			}
		}
		if again := Redact(Redact(s)); again != Redact(s) {
			t.Logf("%q is not stable: %q, %q", s, Redact(s), again)
		}
		// A secret that follows the name of one is gone wherever it stands.
		if got := Redact("--api-key hunter2 " + s); strings.Contains(got, "hunter2") && !strings.Contains(s, "hunter2") {
			t.Fatalf("%q", got)
		}
	})
}

func redactArgs(args []string) []string { return redactor{}.args(args) }
