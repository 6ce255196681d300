package report

import (
	"slices"
	"strings"
	"unicode"
)

// redacted stands where a secret was.
const redacted = "***"

// Redact takes the secrets out of a command line or any sentence that quotes one: the values of
// options, variables, headers and JSON members whose name says that they are secret, passwords in
// URLs, and words that have the form of a token whoever names them.
func Redact(s string) string {
	if !suspicious(s) {
		return s
	}
	r := redactor{in: s}
	r.run()
	return r.out.String()
}

// RedactArgs does the same to an argument vector, where the value of an option may be the next
// element, and keeps its length.
func RedactArgs(args []string) []string {
	if args == nil {
		return nil
	}
	out := make([]string, len(args))
	hide := false // the element before said that this one is a secret
	for i, a := range args {
		name, _, assigned := strings.Cut(a, "=")
		switch {
		case hide && scheme(a): // Authorization: Bearer x
			out[i] = a
			continue
		case hide && !strings.HasPrefix(a, "-"):
			out[i] = hideValue(a)
		case i > 0 && shortSecret(args[i-1]) && !strings.HasPrefix(a, "-") && !plainValue(a):
			out[i] = redacted
		case i > 0 && loginOption[args[i-1]] && strings.Contains(a, ":") && !strings.Contains(a, "://"):
			user, _, _ := strings.Cut(a, ":")
			out[i] = user + ":" + redacted
		case assigned && !strings.ContainsAny(name, " /:") && secretName(strings.TrimLeft(name, "-")):
			_, value, _ := strings.Cut(a, "=")
			out[i] = name + "=" + hideValue(value) // all of it, with the spaces that it may have
		default:
			out[i] = Redact(a)
		}
		hide = secretOption(a)
	}
	return out
}

// secretOption tells that an argument is an option whose value comes next and is a secret.
func secretOption(a string) bool {
	name, header := strings.CutSuffix(a, ":") // Authorization: x, as two arguments
	return (header || strings.HasPrefix(a, "-")) && !strings.ContainsAny(name, "= :") && secretName(strings.TrimLeft(name, "-"))
}

// scheme tells the word that stands before the secret in an Authorization header.
func scheme(s string) bool {
	switch strings.ToLower(s) {
	case "bearer", "basic", "token", "digest", "apikey":
		return true
	}
	return false
}

// loginOption are options that take user:password.
var loginOption = map[string]bool{"-u": true, "--user": true, "--basic": true, "--userpass": true, "--proxy-user": true}

// hideValue hides a secret, but keeps what is a reference to one: $TOKEN, ${input:key}.
func hideValue(v string) string {
	if v == "" || reference(v) {
		return v
	}
	return redacted
}

// reference tells that a value is only the name of a variable, which a hash like $2b$10$... is not.
func reference(v string) bool {
	name, ok := strings.CutPrefix(v, "$")
	return ok && name != "" && (name[0] == '{' || name[0] == '_' || unicode.IsLetter(rune(name[0]))) && !strings.Contains(name, "$")
}

// shortSecret tells that an option of one letter often has a secret for its value: -p is a password
// or a port, -k a key or the wish not to look at a certificate.
func shortSecret(option string) bool { return option == "-p" || option == "-k" }

// plainValue tells that the value of such an option is none: a number, a path, a URL, a package (npx -p).
func plainValue(v string) bool {
	return v == "" || strings.Contains(v, "mcp") || strings.ContainsAny(v, "/\\.:") || strings.Trim(v, "0123456789") == ""
}

// secretWords are the words of a name, cut at its humps, hyphens and underscores, that make its
// value a secret.
var secretWords = map[string]bool{
	"token": true, "secret": true, "password": true, "passwd": true, "passphrase": true, "pwd": true, "pass": true, "credential": true,
	"credentials": true, "apikey": true, "authorization": true, "auth": true, "bearer": true, "cookie": true, "pat": true, "jwt": true,
	"signature": true, "sig": true, "sas": true, "dsn": true, "accesskey": true, "privatekey": true, "secretkey": true, "authtoken": true,
	"accesstoken": true, "refreshtoken": true, "clientsecret": true, "tokens": true, "secrets": true, "webhook": true,
	"pw": true, "pws": true, "creds": true, "cred": true, "otp": true, "mnemonic": true, "passcode": true, "pin": true,
}

// secretEndings make a secret of a word that is written as one: PGPASSWORD, GHTOKEN, openaikey.
var secretEndings = []string{"password", "passwd", "passphrase", "token", "secret", "apikey", "credentials"}

// plainKeys are what a key is of when it is no secret: the column of a table, a half of a pair that
// is meant to be known, a place, a stroke.
var plainKeys = map[string]bool{
	"public": true, "primary": true, "foreign": true, "sort": true, "partition": true, "cache": true, "hot": true, "index": true, "map": true,
	"object": true, "row": true, "lookup": true, "translation": true, "registry": true, "no": true,
}

// notSecret are names that look like secrets and are settings.
var notSecret = map[string]bool{
	"auth-mode": true, "auth-type": true, "auth-method": true, "auth-server": true, "auth-url": true, "token-url": true, "max-tokens": true,
	"oauth-port": true, "token-limit": true, "auth-port": true, "auth-timeout": true, "no-auth": true, "key-file": true,
	"token-file": true, "password-file": true, "secret-file": true, "passwd-file": true, "auth-file": true, "session-timeout": true,
}

// secretName tells that the value of something with this name is a secret.
func secretName(name string) bool {
	words := splitName(name)
	if len(words) == 0 || notSecret[strings.Join(words, "-")] {
		return false
	}
	for i, w := range words {
		if secretWords[w] || slices.ContainsFunc(secretEndings, func(end string) bool { return strings.HasSuffix(w, end) }) {
			return true
		}
		last := i == len(words)-1
		if (w == "key" || w == "keys") && last && (i == 0 || !plainKeys[words[i-1]]) {
			return true
		}
	}
	return false
}

// splitName cuts "X-Api-Key", "apiKey", "API_KEY" into "api", "key" (and "x").
func splitName(name string) []string {
	if len(name) > 64 {
		return nil
	}
	var words []string
	start := -1
	flush := func(end int) {
		if start >= 0 {
			words = append(words, strings.ToLower(name[start:end]))
		}
		start = -1
	}
	lower := false
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush(i)
			lower = false
		case unicode.IsUpper(r) && lower:
			flush(i)
			start, lower = i, false
		default:
			if start < 0 {
				start = i
			}
			lower = unicode.IsLower(r)
		}
	}
	flush(len(name))
	return words
}

// suspicious is a cheap look whether a string can hold a secret at all.
func suspicious(s string) bool {
	run := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '=' || c == ':' || c == '@':
			return true
		case c == '-' && i+1 < len(s) && (i == 0 || s[i-1] == ' '):
			return true
		case tokenByte(c):
			if run++; run >= shortToken {
				return true
			}
		default:
			run = 0
		}
	}
	return false
}

// redactor walks once over a string, piece by piece: a name, what joins it to a value, the value.
type redactor struct {
	in  string
	out strings.Builder
}

func (r *redactor) run() {
	in := r.in
	for i := 0; i < len(in); {
		if strings.HasPrefix(in[i:], "-----BEGIN ") { // a key in PEM
			end := strings.Index(in[i+1:], "-----END ")
			if end < 0 {
				end = len(in) - i - 1
			}
			r.out.WriteString(redacted)
			i += 1 + end
			continue
		}
		if !nameByte(in[i]) {
			r.out.WriteByte(in[i])
			i++
			continue
		}
		end := i
		for end < len(in) && nameByte(in[end]) {
			end++
		}
		word := in[i:end]
		option := strings.HasPrefix(word, "-")
		name := strings.TrimLeft(word, "-")
		value, joined := r.valueAfter(end, option)
		switch {
		case joined == "://":
			r.out.WriteString(word)
			i = r.url(end)
			continue
		case r.login(i, end) > 0: // user:password@host, without a scheme
			r.out.WriteString(word + ":" + redacted)
			i = r.login(i, end)
			continue
		case option && loginOption[word] && joined == " " && strings.Contains(r.word(value), ":") && !strings.Contains(r.word(value), "://"):
			user, _, _ := strings.Cut(r.word(value), ":")
			r.out.WriteString(in[i:value] + user + ":" + redacted)
			i = value + len(r.word(value))
			continue
		case joined == " " && shortSecret(word) && !plainValue(r.word(value)):
			r.out.WriteString(in[i:value])
			i = r.hide(value, joined)
			continue
		case value >= 0 && secretName(name):
			r.out.WriteString(word)
			r.out.WriteString(in[end:value])
			i = r.hide(value, joined)
			continue
		case tokenForm(word):
			r.out.WriteString(redacted)
		default:
			r.out.WriteString(word)
		}
		i = end
	}
}

// valueAfter finds where the value of a name begins that ends at "at": behind "=", ":" or ": ",
// with quotes in between in JSON, or, for an option, behind spaces. It returns -1 for no value.
func (r *redactor) valueAfter(at int, option bool) (start int, joined string) {
	in := r.in
	if strings.HasPrefix(in[at:], "://") {
		return -1, "://"
	}
	i := at
	for i < len(in) && (in[i] == '"' || in[i] == '\'' || in[i] == '\\') { // "token\":\"..."
		i++
	}
	if i < len(in) && (in[i] == '=' || in[i] == ':') {
		sign := in[i]
		i++
		for sign == ':' && i < len(in) && in[i] == ' ' {
			i++
		}
		for i < len(in) && (in[i] == '"' || in[i] == '\'' || in[i] == '\\') {
			i++
		}
		if i < len(in) && in[i] != ' ' {
			return i, string(sign)
		}
		return -1, ""
	}
	if option && i == at && i < len(in) && in[i] == ' ' {
		for i < len(in) && in[i] == ' ' {
			i++
		}
		if i < len(in) && in[i] == '\'' || i < len(in) && in[i] == '"' {
			i++
		}
		if i < len(in) && in[i] != '-' {
			return i, " "
		}
	}
	return -1, ""
}

// login returns where the password ends in "user:password@", when the name that ends at "end" is such
// a user; else 0.
func (r *redactor) login(begin, end int) int {
	if end >= len(r.in) || r.in[end] != ':' || begin > 0 && r.in[begin-1] != ' ' && r.in[begin-1] != '=' && r.in[begin-1] != '\'' && r.in[begin-1] != '"' {
		return 0
	}
	rest := r.word(end + 1)
	at := strings.LastIndexByte(rest, '@')
	const drive = 1 // C:\\Users\\x\\node_modules\\@scope
	if at <= 0 || end-begin == drive || strings.ContainsAny(rest[:at], `/\`) {
		return 0
	}
	return end + 1 + at
}

// word returns the word that begins at "at".
func (r *redactor) word(at int) string {
	end := at
	for end < len(r.in) && !strings.ContainsRune(" \"'\n\t", rune(r.in[end])) {
		end++
	}
	return r.in[at:end]
}

// hide writes the mark instead of the value that begins at "at", and returns where it ends. The
// value of a header goes on behind its scheme: "Authorization: Bearer abc".
func (r *redactor) hide(at int, joined string) int {
	in := r.in
	if reference(r.word(at)) {
		return at
	}
	if joined == ":" {
		for _, scheme := range []string{"Bearer ", "Basic ", "Token ", "bearer ", "basic ", "token ", "ApiKey ", "Digest "} {
			if strings.HasPrefix(in[at:], scheme) {
				r.out.WriteString(scheme)
				at += len(scheme)
				break
			}
		}
	}
	r.out.WriteString(redacted)
	if quote := in[at-1]; quote == '\'' || quote == '"' { // all up to the quote that closes
		if i := strings.IndexByte(in[at:], quote); i >= 0 {
			return at + len(strings.TrimRight(in[at:at+i], `\`))
		}
		return len(in)
	}
	end := at
	for end < len(in) && !strings.ContainsRune(" \"'&,;\n\t\\", rune(in[end])) {
		end++
	}
	return end
}

// url writes a URL's "://" and host, without a password before the "@".
func (r *redactor) url(at int) int {
	in := r.in
	r.out.WriteString("://")
	at += len("://")
	end := at
	for end < len(in) && !strings.ContainsRune(" \"'/?#\n\t", rune(in[end])) {
		end++
	}
	authority := in[at:end]
	// A password may hold a slash or an "@" of its own, so look for the last "@" of the word.
	word := end
	for word < len(in) && !strings.ContainsRune(" \"'\n\t", rune(in[word])) {
		word++
	}
	if i := strings.LastIndexByte(in[at:word], '@'); i >= 0 && (i > len(authority) || strings.ContainsRune(authority, '@')) && strings.ContainsRune(in[at:at+i], ':') {
		user, _, _ := strings.Cut(in[at:at+i], ":")
		r.out.WriteString(user + ":" + redacted + "@")
		return at + i + 1
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 { // a name or a token
		r.out.WriteString(redacted + "@")
		at += i + 1
	}
	r.out.WriteString(in[at:end])
	return r.path(end, word)
}

// path writes what follows the host of a URL up to "word", without the segments and the values of
// its query that look like keys: hooks.example/services/T0/B0/abc123def456, ?code=...
func (r *redactor) path(at, word int) int {
	in := r.in
	query := false
	for at < word {
		end := at
		for end < word && !strings.ContainsRune("/?#&=", rune(in[end])) {
			end++
		}
		part := in[at:end]
		name := at > 0 && end < word && in[end] == '='
		switch {
		case name: // of a value of the query
			r.out.WriteString(part)
		case tokenForm(part), mixed(part, 20), query && at > 0 && in[at-1] == '=' && (mixed(part, 8) || r.secretBefore(at)):
			r.out.WriteString(redacted)
		default:
			r.out.WriteString(part)
		}
		if end < word {
			query = query || in[end] == '?'
			r.out.WriteByte(in[end])
			end++
		}
		at = end
	}
	return at
}

// secretBefore tells that the name in front of the "=" before "at" is that of a secret.
func (r *redactor) secretBefore(at int) bool {
	begin := at - 1
	for begin > 0 && nameByte(r.in[begin-1]) {
		begin--
	}
	return secretName(r.in[begin:at-1]) || r.in[begin:at-1] == "code"
}

// mixed tells that a word of at least so many bytes has letters and digits, as keys have and the
// words of a path seldom.
func mixed(w string, least int) bool {
	n := digits(w)
	return len(w) >= least && n >= 2 && n < len(w) && strings.Trim(w, "0123456789.") != "" && !strings.Contains(w, "-")
}

func nameByte(c byte) bool { return tokenByte(c) || c == '.' }

func tokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

const (
	shortToken = 16 // the shortest tokens that are known by their beginning
	longToken  = 32 // from here on letters of both cases mixed with digits are no word
)

// tokenPrefixes are how the keys of well-known services begin.
var tokenPrefixes = []string{
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "sk_live_", "sk_test_", "rk_live_", "pk_live_", "xoxb-", "xoxp-",
	"xoxa-", "xoxe-", "xapp-", "AKIA", "ASIA", "AIza", "ya29.", "eyJ", "hf_", "npm_", "pypi-", "dop_v1_", "shpat_", "lin_api_", "ntn_", "secret_",
	"figd_", "tvly-", "fc-", "pplx-", "gsk_", "xai-", "r8_", "sbp_", "phc_", "phx_", "SG.", "rnd_", "vercel_", "napi_", "ATATT", "dckr_pat_", "key-",
}

// plainPrefixes are those that no word begins with, so that what follows needs no digit.
var plainPrefixes = []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-proj-", "sk-ant-", "sk-or-v1-", "sk_live_", "sk_test_", "xoxb-", "xoxp-"}

// tokenForm tells that a word looks like a token by itself.
func tokenForm(w string) bool {
	if len(w) < shortToken {
		return false
	}
	for _, p := range plainPrefixes {
		if strings.HasPrefix(w, p) {
			return true
		}
	}
	for _, p := range tokenPrefixes {
		if strings.HasPrefix(w, p) && digits(w) > 0 {
			return true
		}
	}
	if len(w) < longToken || strings.ContainsRune(w, '.') && !strings.HasPrefix(w, "eyJ") {
		return false
	}
	upper, lower := 0, 0
	for i := range len(w) {
		switch c := w[i]; {
		case c >= 'A' && c <= 'Z':
			upper++
		case c >= 'a' && c <= 'z':
			lower++
		}
	}
	return upper >= 2 && lower >= 2 && digits(w) >= 2
}

func digits(w string) (n int) {
	for i := range len(w) {
		if w[i] >= '0' && w[i] <= '9' {
			n++
		}
	}
	return n
}
