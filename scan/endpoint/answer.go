package endpoint

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
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

// parseMessage finds the response with that ID in a text: one object, or an array of them, which
// 2025-03-26 allowed. A server that could not read the request answers with an error whose ID is null
// or missing; that one is taken as well.
func parseMessage(text []byte, id int) (rpcMessage, bool) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	if len(text) == 0 {
		return rpcMessage{}, false
	}
	var all []rpcMessage
	if text[0] == '[' {
		if json.Unmarshal(text, &all) != nil {
			return rpcMessage{}, false
		}
	} else {
		var one rpcMessage
		if json.Unmarshal(text, &one) != nil {
			return rpcMessage{}, false
		}
		all = append(all, one)
	}
	for _, m := range all {
		nameless := len(m.ID) == 0 || string(m.ID) == "null"
		if m.Error == nil && (len(m.Result) == 0 || nameless) {
			continue // a notification or a request of the server's
		}
		var n int
		if nameless || json.Unmarshal(m.ID, &n) == nil && n == id {
			return m, true
		}
		var word string // some gateways turn the number into a string
		if json.Unmarshal(m.ID, &word) == nil && word == itoa(id) {
			return m, true
		}
	}
	return rpcMessage{}, false
}

// answersAnother tells that a text is a JSON-RPC response to some question.
func answersAnother(text []byte) bool {
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

// next returns the next event that has data. What the stream ends in the middle of is no event.
func (s *events) next() (event, error) {
	e := event{name: "message"}
	var data []string
	for {
		line, err := s.in.ReadString('\n')
		first := s.read == 0
		s.read += len(line)
		if err != nil {
			return event{}, err
		}
		line = strings.TrimRight(line, "\r\n")
		if first {
			line = strings.TrimPrefix(line, "\ufeff")
		}
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
