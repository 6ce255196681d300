package endpoint

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
)

// rpcMessage is a JSON-RPC response.
type rpcMessage struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// parseMessage finds the response with an ID in a text: one object, or an array of them, which 2025-03-26
// allowed. An error whose ID is null or missing is taken as well: the server could not read the request.
func parseMessage(text []byte, id int) (rpcMessage, bool) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	all := make([]rpcMessage, 1)
	var err error
	if bytes.HasPrefix(text, []byte("[")) {
		err = json.Unmarshal(text, &all)
	} else {
		err = json.Unmarshal(text, &all[0])
	}
	if err != nil {
		return rpcMessage{}, false
	}
	want := strconv.Itoa(id)
	for _, m := range all {
		hasNoID := len(m.ID) == 0 || string(m.ID) == "null"
		if m.Error == nil && (len(m.Result) == 0 || hasNoID) {
			continue // a notification or a request of the server
		}
		if got := string(m.ID); hasNoID || got == want || got == `"`+want+`"` { // some gateways send strings
			return m, true
		}
	}
	return rpcMessage{}, false
}

// isResponse reports whether a text is a JSON-RPC response to any request.
func isResponse(text []byte) bool {
	var m rpcMessage
	return json.Unmarshal(text, &m) == nil && len(m.ID) > 0 && (len(m.Result) > 0 || m.Error != nil)
}

// event is one of a text/event-stream; see the HTML standard, "Server-sent events".
type event struct{ name, data string }

// events reads events from a stream that the caller has limited.
type events struct {
	in   *bufio.Reader
	read int
}

func newEvents(r io.Reader) *events { return &events{in: bufio.NewReader(r)} }

// next returns the next event that has data. An event that the stream ends within is dropped.
func (s *events) next() (event, error) {
	e := event{name: "message"}
	var data []string
	for {
		line, err := s.in.ReadString('\n')
		if s.read == 0 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		s.read += len(line)
		if err != nil {
			return event{}, err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			if data != nil {
				e.data = strings.Join(data, "\n")
				return e, nil
			}
			e.name = "message"
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			e.name = value
		case "data":
			data = append(data, value)
		}
	}
}
