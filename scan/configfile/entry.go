package configfile

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"mcpdoctor/scan/config"
)

// The shape of an entry is nearly the same for all clients. These are the names of its fields.
var (
	folderKeys    = []string{"cwd", "workingDirectory", "working_directory"}
	urlKeys       = []string{"url", "httpUrl", "serverUrl", "uri", "baseUrl"}
	transportKeys = []string{"type", "transport"} // stdio or local; http, streamable-http, remote; sse
)

// server reads one entry. It returns false for one with neither a command nor a URL, such as a client's
// built-in tools, or another table among the entries.
func server(v any) (s config.Server, ok bool) {
	entry, ok := v.(map[string]any)
	if !ok {
		return s, false
	}
	command, ok := entry["command"]
	if !ok {
		command = entry["cmd"] // Goose
	}
	args := words(entry["args"])
	switch command := command.(type) {
	case string:
		s.Command, s.Args = command, args
	case []any: // with its arguments: opencode, Kilo, Crush
		if all := append(words(command), args...); len(all) > 0 {
			s.Command, s.Args = all[0], all[1:]
		}
	case map[string]any: // Zed before 2025
		s.Command, s.Args = word(command, "path"), words(command["args"])
	}
	s.CWD = word(entry, folderKeys...)
	if s.Command == "" {
		s.URL = word(entry, urlKeys...)
	}
	s.Transport = transport(entry, s)
	s.Disabled = entry["disabled"] == true || entry["enabled"] == false
	return s, s.Command != "" || s.URL != ""
}

// transport returns how an entry is reached. Most do not say: then a URL is Streamable HTTP, unless it ends
// like those of SSE servers.
func transport(entry map[string]any, s config.Server) config.Transport {
	said := strings.ToLower(word(entry, transportKeys...))
	u, err := url.Parse(s.URL)
	switch {
	case s.Command != "":
		return config.Stdio
	case strings.Contains(said, "sse"):
		return config.SSE
	case strings.Contains(said, "http"), entry["httpUrl"] != nil: // Gemini CLI has httpUrl for this transport only
		return config.HTTP
	case err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/sse"):
		return config.SSE
	}
	return config.HTTP
}

// entries adds the servers of a document, and returns their number.
func (r *reader) entries(at config.Place, doc any, keys []string) (n int) {
	for _, key := range keys {
		if key == "." && n > 0 {
			break // the file has the newer form, with a key
		}
		n += r.below(at, doc, strings.Split(key, "/"))
	}
	return n
}

// below follows keys to the entries.
func (r *reader) below(at config.Place, v any, keys []string) (n int) {
	if len(keys) == 0 || keys[0] == "." {
		return r.list(at, v)
	}
	table, _ := v.(map[string]any)
	if keys[0] != "*" {
		return r.below(at, table[keys[0]], keys[1:])
	}
	for _, project := range slices.Sorted(maps.Keys(table)) {
		at.Project = project
		r.projects = append(r.projects, config.Folder{Path: project, Client: at.Client})
		n += r.below(at, table[project], keys[1:])
	}
	return n
}

// list adds the entries of a table by name, or those of a list of tables with a name.
func (r *reader) list(at config.Place, v any) (n int) {
	add := func(name string, v any) {
		if s, ok := server(v); ok && name != "" {
			s.Client, s.Name, s.File, s.Project, s.Named = at.Client, name, at.Path, at.Project, at.Named
			r.found.Servers = append(r.found.Servers, s)
			n++
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			add(name, v[name])
		}
	case []any: // Continue
		for _, item := range v {
			add(word(item, "name"), item)
		}
	case []map[string]any: // Mistral Vibe, in TOML
		for _, item := range v {
			add(word(item, "name"), item)
		}
	}
	return n
}

// word returns the first value that is a text, "" if none is.
func word(v any, keys ...string) string {
	table, _ := v.(map[string]any)
	for _, key := range keys {
		if s, ok := table[key].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// words returns a list of arguments. A number such as that in "--port", 8080 is one too.
func words(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		switch item.(type) {
		case nil, []any, map[string]any:
		default:
			out = append(out, fmt.Sprint(item))
		}
	}
	return out
}
