package endpoint

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// masked stands where a secret was.
const masked = "***"

// shown writes a URL without its user and the values of its query, whatever they are.
func shown(u *url.URL) string {
	out := *u
	user := ""
	if u.User != nil {
		out.User, user = nil, masked+"@"
	}
	if u.RawQuery != "" {
		var pairs []string
		for pair := range strings.SplitSeq(u.RawQuery, "&") {
			name, _, assigned := strings.Cut(pair, "=")
			if !assigned { // ?TOKEN
				pairs = append(pairs, masked)
				continue
			}
			pairs = append(pairs, name+"="+masked)
		}
		out.RawQuery = strings.Join(pairs, "&")
	}
	out.Fragment, out.RawFragment = "", ""
	return strings.Replace(out.String(), "://", "://"+user, 1)
}

// leastSecret is the shortest value that is looked for in answers: shorter ones are parts of
// everything.
const leastSecret = 4

// secretsOf are the values that no answer may repeat.
func secretsOf(o Options) []string {
	var out []string
	for _, values := range o.Header {
		for _, v := range values {
			out = append(out, v)
			out = append(out, strings.Fields(v)...) // Bearer x
		}
	}
	if u := o.URL.User; u != nil {
		password, _ := u.Password()
		out = append(out, u.Username(), password, base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	for pair := range strings.SplitSeq(o.URL.RawQuery, "&") {
		name, value, assigned := strings.Cut(pair, "=")
		if !assigned {
			value = name
		}
		out = append(out, value)
		if plain, err := url.QueryUnescape(value); err == nil {
			out = append(out, plain)
		}
	}
	return out
}

// veil takes the secrets out of a text of the endpoint.
func (a *asker) veil(s string) string {
	if a.hide == nil {
		a.hide = replacer(a.secrets)
	}
	return a.hide.Replace(s)
}

// replacer puts the mask in the place of each secret, as it is or as a URL has it. The longest come
// first, since one may be a part of another.
func replacer(secrets []string) *strings.Replacer {
	all := slices.Clone(secrets)
	for _, s := range secrets {
		all = append(all, url.QueryEscape(s), url.PathEscape(s))
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, s := range slices.Compact(all) {
		if len(s) >= leastSecret && !schemes[strings.ToLower(s)] {
			pairs = append(pairs, s, masked)
		}
	}
	return strings.NewReplacer(pairs...)
}

// schemes are the words before the secret in an Authorization header.
var schemes = map[string]bool{"bearer": true, "basic": true, "token": true, "digest": true}

// shortest is how many bytes of a text from the endpoint are kept.
const shortest = 200

// short is a text of the endpoint without secrets, cut to a length for a line.
func (a *asker) short(s string) string {
	s = strings.TrimSpace(a.veil(s))
	if len(s) > shortest {
		s = strings.ToValidUTF8(s[:shortest], "") + " ..."
	}
	return s
}

// contentType is the media type of an answer, in lower case and without parameters;
// empty when none is given, "unreadable" when it is none.
func contentType(h http.Header) string {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	const longest = 64
	if len(kind) > longest || strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz0123456789/+.-") != "" {
		return "unreadable"
	}
	return kind
}
