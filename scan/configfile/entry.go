package configfile

import (
	"fmt"
	"maps"
	"mcpdoctor/scan/config"
	"net/url"
	"slices"
	"strings"
)

// entries adds the servers of a document, and returns how many there are.
func (r *reader) entries(at config.Place, doc any, keys []string) (n int) {
	for _, key := range keys {
		found := r.below(at, doc, strings.Split(key, "/"))
		n += found
		if found > 0 && key == "mcpServers" && slices.Contains(keys, ".") {
			break // "." is the older form of the same file
		}
	}
	return n
}

// below follows the keys to the entries.
func (r *reader) below(at config.Place, v any, keys []string) (n int) {
	if len(keys) == 0 || keys[0] == "." {
		return r.list(at, v)
	}
	table, _ := v.(map[string]any)
	if keys[0] != "*" {
		return r.below(at, table[keys[0]], keys[1:])
	}
	for _, project := range sortedKeys(table) {
		in := at
		in.Project = project
		r.projects = append(r.projects, config.Folder{Path: project, Client: at.Client})
		n += r.below(in, table[project], keys[1:])
	}
	return n
}

// list adds the entries of a table by name, or of a list of tables that have a name.
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
		for _, name := range sortedKeys(v) {
			add(name, v[name])
		}
	case []any: // Continue, Mistral Vibe
		for _, item := range v {
			add(word(item, "name"), item)
		}
	case []map[string]any: // the same in TOML
		for _, item := range v {
			add(word(item, "name"), item)
		}
	}
	return n
}

// server reads one entry. All clients write nearly the same:
//
//	command, args           the usual
//	command: [cmd, args]    opencode, Kilo, Crush
//	command: {path, args}   Zed, before 2025
//	cmd, args               Goose
//	url, httpUrl, serverUrl, uri, baseUrl    of one that is running already
//	type, transport         stdio or local; http, streamable-http, remote; sse
//	disabled, enabled       either
//
// It returns false for what tells neither a command nor a URL, such as a client's own built-in
// tools, or another table that stands among the entries.
func server(v any) (s config.Server, ok bool) {
	entry, ok := v.(map[string]any)
	if !ok {
		return s, false
	}
	switch command := first(entry, "command", "cmd").(type) {
	case string:
		s.Command, s.Args = command, words(entry["args"])
	case []any:
		if all := append(words(command), words(entry["args"])...); len(all) > 0 {
			s.Command, s.Args = all[0], all[1:]
		}
	case map[string]any:
		s.Command, s.Args = word(command, "path"), words(command["args"])
	}
	s.CWD = word(entry, "cwd", "workingDirectory", "working_directory")
	if s.Command == "" {
		s.URL = word(entry, "url", "httpUrl", "serverUrl", "uri", "baseUrl")
	}
	s.Transport = transport(entry, s)
	s.Disabled = entry["disabled"] == true || entry["enabled"] == false
	return s, s.Command != "" || s.URL != ""
}

// transport tells how an entry is talked to. Most need not say it: then a URL is Streamable HTTP,
// unless it ends as those of SSE servers do.
func transport(entry map[string]any, s config.Server) config.Transport {
	if s.Command != "" {
		return config.Stdio
	}
	switch said := strings.ToLower(word(entry, "type", "transport")); {
	case strings.Contains(said, "sse"):
		return config.SSE
	case strings.Contains(said, "http"):
		return config.HTTP
	}
	if _, is := entry["httpUrl"]; is { // Gemini CLI's name for it
		return config.HTTP
	}
	if u, err := url.Parse(s.URL); err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/sse") {
		return config.SSE
	}
	return config.HTTP
}

// first returns the value of the first key that is there.
func first(table map[string]any, keys ...string) any {
	for _, key := range keys {
		if v, ok := table[key]; ok {
			return v
		}
	}
	return nil
}

// word returns the first value that is a text; "" when none is.
func word(v any, keys ...string) string {
	table, _ := v.(map[string]any)
	for _, key := range keys {
		if s, ok := table[key].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// words returns a list of arguments. A number among them, as in "--port", 8080, is a word too.
func words(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		switch item := item.(type) {
		case string:
			out = append(out, item)
		case float64, int64, bool:
			out = append(out, fmt.Sprint(item))
		}
	}
	return out
}

func sortedKeys(table map[string]any) []string { return slices.Sorted(maps.Keys(table)) }
