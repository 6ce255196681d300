package endpoint

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"sync"
)

const (
	masked = "***"

	// minSecret is the shortest value that is masked in answers: shorter ones are parts of everything.
	minSecret = 4

	// maxText is how many bytes of a text from the endpoint are kept.
	maxText = 200
)

// authSchemes are the words before the secret in an Authorization header.
var authSchemes = []string{"bearer", "basic", "token", "digest"}

// secrets masks values in texts.
type secrets struct {
	mu       sync.Mutex
	values   []string
	replacer *strings.Replacer // nil after a value was added
}

// newSecrets has the values of the headers, and of the URL's user and query.
func newSecrets(o Options) *secrets {
	s := &secrets{}
	for _, values := range o.Header {
		for _, v := range values {
			s.add(v)
			s.add(strings.Fields(v)...) // Bearer x
		}
	}
	if u := o.URL.User; u != nil {
		password, _ := u.Password()
		s.add(u.Username(), password, base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	for pair := range strings.SplitSeq(o.URL.RawQuery, "&") {
		name, value, assigned := strings.Cut(pair, "=")
		if !assigned {
			value = name
		}
		plain, _ := url.QueryUnescape(value) // empty when it is no escaped text
		s.add(value, plain)
	}
	return s
}

func (s *secrets) add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		if len(v) >= minSecret && !slices.Contains(authSchemes, strings.ToLower(v)) {
			s.values = append(s.values, v, url.QueryEscape(v), url.PathEscape(v))
			s.replacer = nil
		}
	}
}

func (s *secrets) mask(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replacer == nil {
		// The longest first: one may be a part of another.
		slices.SortFunc(s.values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
		s.values = slices.Compact(s.values)
		var pairs []string
		for _, v := range s.values {
			pairs = append(pairs, v, masked)
		}
		s.replacer = strings.NewReplacer(pairs...)
	}
	return s.replacer.Replace(text)
}

// short masks a text and cuts it to a length for a line.
func (s *secrets) short(text string) string {
	text = strings.TrimSpace(s.mask(text))
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + " ..."
	}
	return text
}

// maskedURL returns a URL without its user, fragment and the values of its query.
func maskedURL(u *url.URL) string {
	out := *u
	out.User, out.Fragment, out.RawFragment = nil, "", ""
	if u.RawQuery != "" {
		pairs := strings.Split(u.RawQuery, "&")
		for i, pair := range pairs {
			name, _, assigned := strings.Cut(pair, "=")
			pairs[i] = name + "=" + masked
			if !assigned { // ?TOKEN
				pairs[i] = masked
			}
		}
		out.RawQuery = strings.Join(pairs, "&")
	}
	if u.User == nil {
		return out.String()
	}
	return strings.Replace(out.String(), "://", "://"+masked+"@", 1)
}
