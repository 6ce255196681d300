package endpoint

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpdoctor/scan/facts"
)

// The handlers of the official Go SDK, which somebody else wrote by the specification: they speak both
// eras at one endpoint.
func TestEndpointGoSDK(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(&mcp.Implementation{Name: "go", Version: "1"}, nil)
	get := func(*http.Request) *mcp.Server { return server }
	for name, c := range map[string]struct {
		handler http.Handler
		want    facts.Transport
		modern  bool
		session bool
		status  map[facts.Ask]int
	}{
		"sessions": {mcp.NewStreamableHTTPHandler(get, nil), facts.Streamable, true, true,
			map[facts.Ask]int{facts.AskInitialize: 200, facts.AskModern: 200, facts.AskInitialized: 202, facts.AskWith: 200, facts.AskUnknown: 404, facts.AskDelete: 204, facts.AskDeleted: 404, facts.AskDropped: 200}},
		"stateless": {mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true}), facts.Streamable, true, false,
			map[facts.Ask]int{facts.AskInitialize: 200, facts.AskModern: 200, facts.AskWithout: 200, facts.AskUnknown: 200}},
		"sse": {mcp.NewSSEHandler(get, nil), facts.LegacySSE, false, false,
			map[facts.Ask]int{facts.AskInitialize: 400, facts.AskStream: 200, facts.AskOverStream: 202, facts.AskClosed: 404, facts.AskStale: 404, facts.AskAgain: 200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(c.handler)
			t.Cleanup(func() {
				s.CloseClientConnections()
				s.Close()
			})
			o := options(t, s.URL, 3)
			o.Settling = time.Second // it notices the end of a stream a moment later
			e := asked(t, o)
			if e.Transport != c.want || e.Modern != c.modern || e.Session != c.session || e.Name != "go" || e.Version != newestLegacy || e.Retention.Served != 3 {
				t.Errorf("%+v", e)
			}
			for ask, status := range c.status {
				if got := answer(t, e, ask); got.Status != status {
					t.Errorf("%s is answered with %s, not %d", ask, got.Words(), status)
				}
			}
		})
	}
}
