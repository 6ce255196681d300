package configfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

const (
	// maxDepth limits nesting. Parsers recurse, and a file of nothing but brackets would exhaust the stack.
	maxDepth = 1000

	// maxParsed is the largest text for parsers whose time or memory grows faster than the text: all but
	// that of plain JSON.
	maxParsed = 1 << 20

	// maxNodes is the largest number of values of a YAML text with its aliases expanded: a few lines can
	// stand for billions.
	maxNodes = 100_000

	// maxDots is the largest sum, over the lines of a TOML text, of the square of the number of dots: a key
	// may have a part before each, and time and memory of the parser grow with that square. The limit takes
	// half a second; real files reach a hundredth of it.
	maxDots = 2_000_000
)

var (
	tooLong = refused("larger than 1 MB")
	tooDeep = refused("nested too deeply")
	tooWide = refused("too many aliases")
)

// parse reads JSON (with comments, as most clients allow), TOML or YAML by the ending of the file's name. A
// document consists of map[string]any, []any, string, bool and numbers; that of an empty file is nil. The
// messages of the parsers are not used, since they may quote the file.
func parse(path string, text []byte) (doc any, err error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // a byte-order mark, which editors on Windows write
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	name, read := "JSON", parseJSON
	switch strings.ToLower(filepath.Ext(path)) {
	case ".toml":
		name, read = "TOML", parseTOML
	case ".yaml", ".yml":
		name, read = "YAML", parseYAML
	default:
		if json.Unmarshal(text, &doc) == nil { // without comments: the usual case, and much faster
			return doc, nil
		}
	}
	if err = checkSize(text); err == nil {
		doc, err = read(text)
	}
	if err == nil || errors.As(err, new(problem)) {
		return doc, err
	}
	p := broken("invalid " + name)
	if m := regexp.MustCompile(`\bline (\d{1,9})\b`).FindStringSubmatch(err.Error()); m != nil {
		p.line, _ = strconv.Atoi(m[1])
	}
	return nil, p
}

func parseJSON(text []byte) (doc any, err error) {
	plain, err := hujson.Standardize(text)
	if err == nil {
		err = json.Unmarshal(plain, &doc)
	}
	return doc, err
}

func parseTOML(text []byte) (doc any, err error) {
	dots := 0
	for line := range bytes.Lines(text) {
		n := bytes.Count(line, []byte("."))
		dots += n * n
	}
	if dots > maxDots {
		return nil, tooDeep
	}
	err = toml.Unmarshal(text, &doc)
	return doc, err
}

// parseYAML does not let the parser decode values: it would turn 1.10 into 1.1, and compare each key of a
// table with each other.
func parseYAML(text []byte) (any, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	c := yamlConverter{left: maxNodes}
	doc := c.value(&root, 0)
	return doc, c.err
}

// yamlConverter makes plain values of nodes.
type yamlConverter struct {
	left int
	err  error
}

func (c *yamlConverter) value(n *yaml.Node, depth int) any {
	if c.left--; c.left < 0 {
		c.err = tooWide
	}
	if depth > maxDepth { // also of an alias within the value that it stands for
		c.err = tooDeep
	}
	if c.err != nil {
		return nil
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) > 0 {
			return c.value(n.Content[0], depth+1)
		}
	case yaml.AliasNode:
		return c.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			list = append(list, c.value(item, depth+1))
		}
		return list
	case yaml.MappingNode:
		return c.table(n, depth)
	}
	switch n.Tag {
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!null":
		return nil
	}
	return n.Value
}

func (c *yamlConverter) table(n *yaml.Node, depth int) any {
	table := map[string]any{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], c.value(n.Content[i+1], depth+1)
		if key.Tag != "!!merge" {
			table[key.Value] = value
			continue
		}
		defaults, _ := value.(map[string]any) // <<: *defaults
		for key, v := range defaults {
			if _, ok := table[key]; !ok {
				table[key] = v
			}
		}
	}
	return table
}

// checkSize protects parsers that have no limits of their own. It also counts brackets in strings and
// comments; no real file has a thousand of them open.
func checkSize(text []byte) error {
	if len(text) > maxParsed {
		return tooLong
	}
	depth := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			if depth++; depth > maxDepth {
				return tooDeep
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return nil
}
