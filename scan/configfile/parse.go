package configfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"mcpdoctor/scan/config"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

const (
	// maxDepth is how deeply tables and lists may lie in each other. Parsers call themselves for
	// each level, and a file of nothing but brackets would exhaust their stack.
	maxDepth = 1000

	// maxParsed is the largest text that is given to the parsers whose time or memory grows faster
	// than the text, which are all but that of plain JSON.
	maxParsed = 1 << 20
)

// parse reads a text by the ending of its file's name: JSON (with comments, as most clients allow),
// TOML or YAML. A document is made of map[string]any, []any, string, bool and numbers; nil when the
// file is empty, which is no mistake. What is wrong is said in words of our own: those of a parser
// may quote the file.
func parse(path string, text []byte) (doc any, t trouble) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // Windows editors put a byte-order mark in front
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, trouble{}
	}
	var err error
	name := "JSON"
	switch strings.ToLower(filepath.Ext(path)) {
	case ".toml":
		name = "TOML"
		doc, err = parseTOML(text)
	case ".yaml", ".yml":
		name = "YAML"
		doc, err = parseYAML(text)
	default:
		doc, err = parseJSON(text)
	}
	var beyond limitError
	switch {
	case errors.As(err, &beyond):
		return nil, trouble{state: config.Refused, reason: string(beyond)}
	case err != nil:
		return nil, trouble{state: config.Broken, reason: "it is not valid " + name, line: lineOf(err)}
	}
	return doc, trouble{}
}

// limitError says that a text may be valid but is not read.
type limitError string

func (e limitError) Error() string { return string(e) }

const (
	tooLong limitError = "it is larger than 1 MB"
	tooDeep limitError = "its tables lie in each other too deeply"
	tooWide limitError = "its aliases stand for too much"
)

func parseJSON(text []byte) (doc any, err error) {
	if json.Unmarshal(text, &doc) == nil { // no comments: the common case, and much the faster
		return doc, nil
	}
	if err := fits(text); err != nil {
		return nil, err
	}
	plain, err := hujson.Standardize(text)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(plain, &doc)
	return doc, err
}

func parseTOML(text []byte) (any, error) {
	if err := fits(text); err != nil {
		return nil, err
	}
	if longKeys(text) {
		return nil, tooDeep
	}
	var doc map[string]any
	if err := toml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	return doc, nil
}

// fits guards a parser that has no limits of its own. Brackets in strings and comments count too,
// which nobody notices below a thousand that are not closed.
func fits(text []byte) error {
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

// maxDots is how much the dots of a TOML text may weigh. A key may have a part before each, as in
// "a.b.c", and the parser's work and memory grow with the square of their number in a line. So much
// takes half a second; real files weigh a hundredth.
const maxDots = 2_000_000

// longKeys tells that a text may have keys of very many parts.
func longKeys(text []byte) bool {
	weight := 0
	for line := range bytes.Lines(text) {
		n := bytes.Count(line, []byte("."))
		weight += n * n
	}
	return weight > maxDots
}

func parseYAML(text []byte) (any, error) {
	if err := fits(text); err != nil {
		return nil, err
	}
	var root yaml.Node // as it is written: nothing is expanded yet
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	c := yamlConverter{left: maxNodes}
	doc := c.value(&root, 0)
	return doc, c.err
}

// maxNodes is how many values a YAML document may have once its aliases are followed. A few lines
// can stand for billions.
const maxNodes = 100_000

// yamlConverter makes plain values of nodes.
type yamlConverter struct {
	left int
	err  error
}

func (c *yamlConverter) value(n *yaml.Node, depth int) any {
	if c.left--; c.left < 0 {
		c.err = tooWide
	}
	if depth > maxDepth {
		c.err = tooDeep // an alias of what it stands in has no end
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
		table := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Tag == "!!merge" {
				c.merge(table, n.Content[i+1], depth)
				continue
			}
			table[n.Content[i].Value] = c.value(n.Content[i+1], depth+1)
		}
		return table
	case yaml.ScalarNode:
		switch n.Tag {
		case "!!bool":
			return strings.EqualFold(n.Value, "true")
		case "!!null":
			return nil
		}
		return n.Value
	}
	return nil
}

// merge adds what "<<: *defaults" stands for, without replacing anything.
func (c *yamlConverter) merge(into map[string]any, from *yaml.Node, depth int) {
	other, _ := c.value(from, depth+1).(map[string]any)
	for key, v := range other {
		if _, has := into[key]; !has {
			into[key] = v
		}
	}
}

var lineNumber = regexp.MustCompile(`\bline (\d+)`)

// lineOf finds the line in a parser's message, which is all that is taken from it; 0 when there is
// none.
func lineOf(err error) int {
	if m := lineNumber.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1]) // a number that is too large tells nothing
		return n
	}
	return 0
}
