package probe

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The handlers of the official Go SDK, which somebody else wrote by the specification: they speak both
// eras at one endpoint.
func TestEndpointGoSDK(t *testing.T) {
	t.Parallel()
	server := mcp.NewServer(&mcp.Implementation{Name: "go", Version: "1"}, nil)
	get := func(*http.Request) *mcp.Server { return server }
	for name, c := range map[string]struct {
		handler http.Handler
		want    Transport
		modern  bool
		session bool
		status  map[Ask]int
	}{
		"sessions": {mcp.NewStreamableHTTPHandler(get, nil), Streamable, true, true,
			map[Ask]int{AskInitialize: 200, AskModern: 200, AskInitialized: 202, AskWith: 200, AskUnknown: 404, AskDelete: 204, AskDeleted: 404, AskDropped: 200}},
		"stateless": {mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true}), Streamable, true, false,
			map[Ask]int{AskInitialize: 200, AskModern: 200, AskWithout: 200, AskUnknown: 200}},
		"sse": {mcp.NewSSEHandler(get, nil), LegacySSE, false, false,
			map[Ask]int{AskInitialize: 400, AskStream: 200, AskOverStream: 202, AskClosed: 404, AskStale: 404, AskAgain: 200}},
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
