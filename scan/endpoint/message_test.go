package endpoint

import (
	"io"
	"strings"
	"testing"
)

func TestParseMessage(t *testing.T) {
	for text, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":3,"result":{}}`: true, ` {"id":3,"result":1} `: true, "\xef\xbb\xbf{\"id\":3,\"result\":1}": true, `{"id":"3","result":1}`: true,
		`[{"method":"x"},{"id":3,"result":{}}]`: true, `{"id":null,"error":{"code":-1,"message":"m"}}`: true, `{"error":{"code":-1}}`: true, `{"id":3,"error":{"code":-1}}`: true,
		`{"id":4,"result":{}}`: false, `{"id":3}`: false, `{"id":3,"method":"ping"}`: false, `{"method":"x","params":{}}`: false, `{"id":null,"result":{}}`: false, `{"result":{}}`: false,
		``: false, `[]`: false, `3`: false, `null`: false, `"x"`: false, `{"id":4,"error":{"code":-1}}`: false, `{`: false, `[{]`: false,
	} {
		if _, ok := parseMessage([]byte(text), 3); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
}

func TestEvents(t *testing.T) {
	in := newEvents(strings.NewReader("\ufeff: comment\nid: 1\nretry: 5\nevent: endpoint\ndata: /x?a=b\n\n\n\r\ndata:one\r\ndata: two\r\ndata\r\n\r\nevent: empty\n\ndata: cut off\n"))
	for i, want := range []event{{"endpoint", "/x?a=b"}, {"message", "one\ntwo\n"}} {
		if got, err := in.next(); err != nil || got != want {
			t.Errorf("event %d is %+v, %v", i, got, err)
		}
	}
	if got, err := in.next(); err != io.EOF {
		t.Errorf("then %+v, %v", got, err)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("event: message\ndata: {\"id\":3,\"result\":{}}\n\n")
	f.Add("data: a\r\n\r\n:\n\ndata")
	f.Fuzz(func(t *testing.T, text string) {
		in := newEvents(strings.NewReader(text))
		for total := 0; ; {
			e, err := in.next()
			if err != nil {
				return
			}
			if total += len(e.data); total > len(text) {
				t.Fatalf("%d bytes came out of %d", total, len(text))
			}
			parseMessage([]byte(e.data), 3)
		}
	})
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":3,"result":{}}`))
	f.Add([]byte(`[{"id":3,"error":{"code":-32022,"message":"m","data":{"supported":["x"]}}}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, ok := parseMessage(text, 3)
		if ok && m.Error == nil && len(m.Result) == 0 {
			t.Fatalf("%q is neither a result nor an error", text)
		}
	})
}
