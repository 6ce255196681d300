package report

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// This file says what a secret looks like; redact.go finds them.

var (
	// secretWords make a name that has one of them the name of a secret.
	secretWords = set(`token tokens secret secrets password passwd passphrase passcode pwd pass pw pws pin otp pat jwt sas dsn sig
		signature auth authorization authtoken accesstoken refreshtoken bearer cookie webhook mnemonic credential credentials cred creds
		apikey accesskey privatekey secretkey clientsecret`)

	// secretEndings are for words that are written as one: PGPASSWORD, GHTOKEN, myapikey.
	secretEndings = strings.Fields("password passwd passphrase token secret apikey credentials")

	// strictEndings are those of names that are secret in a configuration: openaikey, api-keys, session.
	strictEndings = strings.Fields("key token secret password passwd credential session")

	// plainKeys are the words before "key" that make it no secret.
	plainKeys = set("public primary foreign sort partition cache hot index map object row lookup translation registry no")

	// plainNames look secret and are settings.
	plainNames = set(`no-auth auth-mode auth-type auth-method auth-server auth-url auth-port auth-timeout oauth-port token-url token-limit
		max-tokens session-timeout key-file token-file password-file secret-file passwd-file auth-file`)

	// loginOptions take user:password.
	loginOptions = set("-u --user --basic --userpass --proxy-user")

	// shortOptions are a password or a port, a key or "insecure"; strictOptions may be a token or a user, too.
	shortOptions  = set("-p -k")
	strictOptions = set("-p -k -P -t -u")

	// schemes stand before the secret in an Authorization header.
	schemes = set("bearer basic token digest apikey")

	// tokenPrefixes begin tokens of well-known services and no word. What begins with one of wordPrefixes is a
	// token if it has a digit.
	tokenPrefixes = strings.Fields(`ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- sk-proj- sk-ant- sk-or-v1- sk_live_ sk_test_ xoxb- xoxp-`)
	wordPrefixes  = strings.Fields(`sk- rk_live_ pk_live_ xoxa- xoxe- xapp- AKIA ASIA AIza ya29. eyJ hf_ npm_ pypi- dop_v1_ shpat_ lin_api_ ntn_
		secret_ figd_ tvly- fc- pplx- gsk_ xai- r8_ sbp_ phc_ phx_ SG. rnd_ vercel_ napi_ ATATT dckr_pat_ key-`)
)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}

// isSecret reports whether the value of something with this name is a secret.
func (r redactor) isSecret(name string) bool {
	words := splitName(name)
	if len(words) == 0 || plainNames[strings.Join(words, "-")] {
		return false
	}
	last := len(words) - 1
	for _, w := range words {
		if secretWords[w] || hasAny(w, strings.HasSuffix, secretEndings) {
			return true
		}
	}
	if w := strings.TrimSuffix(words[last], "s"); r.strict && words[0] != "no" && (secretWords[w] || hasAny(w, strings.HasSuffix, strictEndings)) {
		return true
	}
	return (words[last] == "key" || words[last] == "keys") && (last == 0 || !plainKeys[words[last-1]])
}

// splitName cuts "X-Api-Key", "apiKey" and "API_KEY" into lower-case words.
func splitName(name string) []string {
	var spaced strings.Builder
	lower := false
	for _, c := range name {
		if lower && unicode.IsUpper(c) {
			spaced.WriteByte(' ')
		}
		lower = unicode.IsLower(c) || unicode.IsDigit(c) // oauth2Bearer
		spaced.WriteRune(unicode.ToLower(c))
	}
	return strings.FieldsFunc(spaced.String(), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}

func hasAny(s string, has func(s, affix string) bool, affixes []string) bool {
	return slices.ContainsFunc(affixes, func(affix string) bool { return has(s, affix) })
}

// isShort reports whether value is the secret of a one-letter option, and not a number, a path, a URL, a package
// (npx -p) or a service (svchost -k). Before is what precedes the option.
func isShort(before, option, value string, strict bool) bool {
	switch {
	case value == "" || value[0] == '-' || strings.Trim(value, "0123456789.:") == "" || isServiceHost.MatchString(before):
		return false
	case strict:
		return strictOptions[option] && !isReference(value) && !strings.Contains(value, "://") && !isPath.MatchString(value)
	}
	first := until(value, " ")
	return shortOptions[option] && !strings.Contains(first, "mcp") && !strings.ContainsAny(first, `/\.:`)
}

var isServiceHost = regexp.MustCompile(`(?i)svchost(\.exe)?"? *$`)

var isPath = regexp.MustCompile(`^(\.{0,2}/|~/|.:[\\/])`)

// isReference reports whether a value only names a variable: $TOKEN, ${input:key}. A hash such as $2b$10$...
// does not.
func isReference(v string) bool { return reference.MatchString(v) && !isToken(v[1:]) }

var reference = regexp.MustCompile(`^\$[{_\pL][^$]*$`)

const (
	shortToken = 16 // the shortest token that is known by its prefix
	longToken  = 32 // from here on, digits mixed with letters of both cases are a token
)

// isToken reports whether a word looks like a token, whatever its name.
func isToken(w string) bool {
	switch {
	case len(w) < shortToken:
		return false
	case hasAny(w, strings.HasPrefix, tokenPrefixes):
		return true
	case digits(w) == 0:
		return false
	case hasAny(w, strings.HasPrefix, wordPrefixes):
		return true
	case len(w) < longToken, strings.Contains(w, ".") && !strings.HasPrefix(w, "eyJ"), temporaryFolder.MatchString(w):
		return false
	}
	return runes(w, unicode.IsUpper) >= 2 && runes(w, unicode.IsLower) >= 2 && digits(w) >= 2
}

// temporaryFolder matches words and a short random suffix, as mkdtemp(3) makes them:
// puppeteer_dev_chrome_profile-Ab12Cd. A browser's profile is evidence of who started it.
var temporaryFolder = regexp.MustCompile(`^[a-z_-]+[_-]\w{1,8}$`)

// isMixed reports whether a part of a URL has letters and digits, as keys do and the words of a path seldom.
func isMixed(w string, least int) bool {
	return len(w) >= least && digits(w) >= 2 && strings.Trim(w, "0123456789.") != "" && !strings.Contains(w, "-")
}

func digits(w string) int { return runes(w, unicode.IsDigit) }

func runes(w string, is func(rune) bool) (n int) {
	for _, c := range w {
		if is(c) {
			n++
		}
	}
	return n
}
