// Package pasted reads process tables from files and bug reports: a snapshot in JSON, or the output of ps(1).
package pasted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"mcpdoctor/scan"
)

// maxInput is the largest text that Read accepts. A hundred thousand processes with long command lines need a
// tenth of it.
const maxInput = 256 << 20

// Read reads a snapshot in JSON (see [scan.Decode]) or the output of ps(1) with its header line. Either may have a
// byte order mark and may be UTF-16, as PowerShell redirects it.
//
// The output of ps has no date, so the snapshot is dated now. If a PID has more than one line (threads, or two
// outputs), the first counts, and a problem says so.
func Read(r io.Reader, now time.Time) (*scan.Snapshot, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxInput {
		return nil, fmt.Errorf("larger than %d MiB, which no process table is", maxInput>>20)
	}
	data = bytes.TrimSpace(toUTF8(data))
	switch {
	case len(data) == 0:
		return nil, errors.New("empty: neither a snapshot nor the output of ps; did the command that should write it fail?")
	case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
		return nil, errors.New("compressed data (gzip): decompress it first")
	case bytes.IndexByte(data, 0) >= 0:
		return nil, errors.New("binary data: neither a snapshot nor the output of ps")
	case data[0] == '{':
		return scan.Decode(data)
	case data[0] == '[' && json.Valid(data):
		return nil, errors.New("a JSON array: a snapshot is an object; write one with: mcpdoctor snapshot")
	}
	return readPS(string(data), now)
}

// toUTF8 removes the byte order mark and converts UTF-16 to UTF-8.
func toUTF8(data []byte) []byte {
	var at func(i int) uint16
	switch {
	case bytes.HasPrefix(data, []byte{0xef, 0xbb, 0xbf}):
		return data[3:]
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		at = func(i int) uint16 { return uint16(data[i]) | uint16(data[i+1])<<8 }
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		at = func(i int) uint16 { return uint16(data[i+1]) | uint16(data[i])<<8 }
	default:
		return data
	}
	units := make([]uint16, 0, len(data)/2)
	for i := 2; i+1 < len(data); i += 2 {
		units = append(units, at(i))
	}
	out := make([]byte, 0, len(units))
	for _, r := range utf16.Decode(units) {
		out = utf8.AppendRune(out, r)
	}
	return out
}
