package endpoint

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpdoctor/scan/facts"
)

// fake is an MCP endpoint whose behaviour is that of one kind of server.
type fake struct {
	sessions bool                                          // it hands them out, and insists on them
	unknown  int                                           // the status for a session that it does not know; 0 serves it all the same
	accepts  bool                                          // an unknown session is accepted with 202
	deletes  int                                           // the status of a DELETE; 0 is 200
	keeps    bool                                          // a DELETE ends nothing
	limit    int                                           // so many sessions at once; 0 for no limit
	modern   bool                                          // it serves 2026-07-28 as well
	only     bool                                          // it serves 2026-07-28 alone
	stream   bool                                          // it answers with text/event-stream
	before   func(http.ResponseWriter, *http.Request) bool // answers itself when it returns true

	requests atomic.Int64
	mu       sync.Mutex
	open     map[string]bool
	opened   int
	deleted  int
}

func (f *fake) serve(t *testing.T) *httptest.Server {
	t.Helper()
	f.open = map[string]bool{}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.requests.Add(1)
	if f.before != nil && f.before(w, r) {
		return
	}
	id := r.Header.Get("Mcp-Session-Id")
	f.mu.Lock()
	defer f.mu.Unlock()
	switch r.Method {
	case http.MethodDelete:
		if f.deletes != 0 {
			w.WriteHeader(f.deletes)
			return
		}
		f.deleted++
		if !f.keeps {
			delete(f.open, id)
		}
		return
	case http.MethodPost:
	default:
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	var m struct {
		ID     *int
		Method string
		Params struct {
			ProtocolVersion string
			Meta            map[string]any `json:"_meta"`
		}
	}
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	modernRequest := m.Params.Meta["io.modelcontextprotocol/protocolVersion"] == modern && r.Header.Get("MCP-Protocol-Version") == modern && r.Header.Get("Mcp-Method") == m.Method
	switch {
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case modernRequest && !f.modern && !f.only:
		f.fail(w, 400, *m.ID, -32000, "Bad Request: Unsupported protocol version")
		return
	case f.only && !modernRequest:
		f.fail(w, 400, *m.ID, unsupportedVersion, "Unsupported protocol version")
		return
	case modernRequest:
	case m.Method == "initialize":
		if f.limit > 0 && len(f.open) >= f.limit {
			f.fail(w, 503, *m.ID, -32000, "Too many open sessions")
			return
		}
		if f.sessions {
			f.opened++
			id = fmt.Sprintf("session-%04d-of-this-server", f.opened)
			f.open[id] = true
			w.Header().Set("Mcp-Session-Id", id)
		}
	case !f.sessions:
	case id == "":
		f.fail(w, 400, *m.ID, -32000, "Bad Request: No valid session ID provided")
		return
	case !f.open[id] && f.accepts:
		w.WriteHeader(http.StatusAccepted)
		return
	case !f.open[id] && f.unknown != 0:
		f.fail(w, f.unknown, *m.ID, -32001, "Session not found: "+id)
		return
	}
	result := `{"tools":[]}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"fake","version":"1.2"}}`
	case "server/discover":
		result = `{"supportedVersions":["2026-07-28"],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1.2"}}}`
	}
	f.write(w, 200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, *m.ID, result))
}

func (f *fake) fail(w http.ResponseWriter, status, id, code int, message string) {
	data := ""
	if code == unsupportedVersion {
		data = `,"data":{"supported":["2026-07-28"],"requested":"x"}`
	}
	f.write(w, status, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":%d,"message":%q%s}}`, id, code, message, data))
}

func (f *fake) write(w http.ResponseWriter, status int, text string) {
	if f.stream && status == 200 {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, ": hello\r\n\r\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\r\n\r\nid: 7\r\ndata: %s\r\n\r\n", text)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprint(w, text)
}

// legacyFake is an endpoint of HTTP+SSE.
type legacyFake struct {
	gone     int    // the status of a POST to a session that is not there; 0 never answers
	address  string // instead of its own address
	once     bool   // it bears one stream only
	requests atomic.Int64
	mu       sync.Mutex
	streams  map[string]chan string
	opened   int
	done     chan struct{}
}

func (f *legacyFake) serve(t *testing.T) *httptest.Server {
	t.Helper()
	f.streams, f.done = map[string]chan string{}, make(chan struct{})
	s := httptest.NewServer(f)
	t.Cleanup(func() { close(f.done); s.Close() })
	return s
}

func (f *legacyFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.requests.Add(1)
	if r.URL.Path == "/sse" && r.Method == http.MethodGet {
		f.listen(w, r)
		return
	}
	if r.URL.Path != "/messages" {
		http.Error(w, "Cannot "+r.Method+" "+r.URL.Path, http.StatusNotFound)
		return
	}
	f.mu.Lock()
	out := f.streams[r.URL.Query().Get("sessionId")]
	f.mu.Unlock()
	if out == nil {
		if f.gone == 0 {
			select {
			case <-f.done:
			case <-r.Context().Done():
			}
			return
		}
		w.WriteHeader(f.gone)
		return
	}
	var m struct {
		ID     *int
		Method string
	}
	_ = json.NewDecoder(r.Body).Decode(&m)
	w.WriteHeader(http.StatusAccepted)
	if m.ID != nil {
		out <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2024-11-05","serverInfo":{"name":"old","version":"0"}}}`, *m.ID)
	}
}

func (f *legacyFake) listen(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.opened++
	id := fmt.Sprintf("%08d-aaaa-4bbb-8ccc-000000000000", f.opened)
	if f.once && f.opened > 1 {
		f.mu.Unlock()
		http.Error(w, "Already connected", http.StatusInternalServerError)
		return
	}
	out := make(chan string, 4)
	f.streams[id] = out
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.streams, id)
		f.mu.Unlock()
	}()
	address := f.address
	if address == "" {
		address = "/messages?sessionId=" + id
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "event: endpoint\ndata: %s\n\n", address)
	w.(http.Flusher).Flush()
	for {
		select {
		case text := <-out:
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", text)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		case <-f.done:
			return
		}
	}
}

// options are those of a quick probe.
func options(t *testing.T, address string, sessions int) Options {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return Options{URL: u, Header: http.Header{}, Sessions: sessions, Timeout: 20 * time.Second, Settling: 50 * time.Millisecond, Now: time.Now}
}

// asked asks, and fails where the endpoint could not be asked.
func asked(t *testing.T, o Options) *facts.Endpoint {
	t.Helper()
	e, err := Probe(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// answer finds the answer to a question.
func answer(t *testing.T, e *facts.Endpoint, ask facts.Ask) facts.Answer {
	t.Helper()
	for _, x := range e.Exchanges {
		if x.Ask == ask {
			return x.Answer
		}
	}
	t.Fatalf("%s was not asked; only %+v", ask, e.Exchanges)
	return facts.Answer{}
}

// told is all that a probe says of an endpoint.
func told(t *testing.T, e *facts.Endpoint, err error) string {
	t.Helper()
	text, failed := json.Marshal(e)
	if failed != nil {
		t.Fatal(failed)
	}
	var words strings.Builder
	words.Write(text)
	if e != nil {
		for _, x := range e.Exchanges {
			words.WriteString("\n" + x.Answer.Words())
		}
	}
	if err != nil {
		words.WriteString("\n" + err.Error())
	}
	return words.String()
}

// The tests mostly wait, so more of them may run at a time than there are processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
