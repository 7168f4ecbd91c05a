package httpapi

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"sort"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs.html
var docsHTML string

var docsTemplate = template.Must(template.New("docs").Parse(docsHTML))

// docGroup is the routes of one tag, for the page at /docs.
type docGroup struct {
	Name   string
	Routes []docRoute
}

type docRoute struct {
	Method, Path, Summary, Description string
	Params                             []docField
	Body, Reply                        []docField
	BodyType                           string
}

type docField struct {
	Name, Type, Doc string
	Depth           int
	Required        bool
}

// tagOrder is how the page is arranged; other tags follow.
var tagOrder = []string{"Ingest", "Sessions", "Evals", "Alerts", "Operations"}

// renderDocs makes the page once: plain HTML that loads nothing.
func (s *server) renderDocs(doc *huma.OpenAPI) error {
	groups := map[string]*docGroup{}
	for path, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete, item.Put} {
			if op == nil {
				continue
			}
			tag := "Operations"
			if len(op.Tags) > 0 {
				tag = op.Tags[0]
			}
			if groups[tag] == nil {
				groups[tag] = &docGroup{Name: tag}
			}
			groups[tag].Routes = append(groups[tag].Routes, describeRoute(doc, path, op))
		}
	}
	var out []*docGroup
	for _, tag := range tagOrder {
		if g := groups[tag]; g != nil {
			out = append(out, g)
			delete(groups, tag)
		}
	}
	for _, g := range groups {
		out = append(out, g)
	}
	for _, g := range out {
		sort.Slice(g.Routes, func(i, j int) bool {
			a, b := g.Routes[i], g.Routes[j]
			return a.Path < b.Path || a.Path == b.Path && a.Method < b.Method
		})
	}
	var b bytes.Buffer
	if err := docsTemplate.Execute(&b, map[string]any{"Groups": out, "Version": s.Version, "About": doc.Info.Description}); err != nil {
		return err
	}
	s.docs = b.Bytes()
	return nil
}

func describeRoute(doc *huma.OpenAPI, path string, op *huma.Operation) docRoute {
	r := docRoute{Method: op.Method, Path: path, Summary: op.Summary, Description: op.Description}
	for _, p := range op.Parameters {
		d := docField{Name: p.Name, Doc: p.Description, Required: p.Required}
		if p.Schema != nil {
			d.Type = p.In + " " + p.Schema.Type
		}
		r.Params = append(r.Params, d)
	}
	if op.RequestBody != nil {
		for kind, media := range op.RequestBody.Content {
			r.BodyType = kind
			r.Body = fieldsOf(doc, media.Schema, 0, nil)
		}
	}
	for _, status := range []string{"200", "201"} {
		if res := op.Responses[status]; res != nil {
			for _, media := range res.Content {
				r.Reply = fieldsOf(doc, media.Schema, 0, nil)
			}
		}
	}
	return r
}

// fieldsOf flattens a schema into indented lines, at most four levels deep and never into itself.
func fieldsOf(doc *huma.OpenAPI, sc *huma.Schema, depth int, within []string) []docField {
	sc, within = resolve(doc, sc, within)
	if sc == nil || depth > 3 {
		return nil
	}
	required := map[string]bool{}
	for _, name := range sc.Required {
		required[name] = true
	}
	names := make([]string, 0, len(sc.Properties))
	for name := range sc.Properties {
		names = append(names, name)
	}
	sort.Strings(names)
	var out []docField
	for _, name := range names {
		p, inner := resolve(doc, sc.Properties[name], within)
		if p == nil {
			continue
		}
		f := docField{Name: name, Type: typeName(p), Doc: p.Description, Depth: depth, Required: required[name]}
		if d := sc.Properties[name].Description; d != "" {
			f.Doc = d
		}
		out = append(out, f)
		if p.Type == "array" && p.Items != nil {
			out = append(out, fieldsOf(doc, p.Items, depth+1, inner)...)
		} else if len(p.Properties) > 0 {
			out = append(out, fieldsOf(doc, p, depth+1, inner)...)
		}
	}
	return out
}

// resolve follows a reference, unless it leads into a schema that is being described already.
func resolve(doc *huma.OpenAPI, sc *huma.Schema, within []string) (*huma.Schema, []string) {
	if sc == nil || sc.Ref == "" {
		return sc, within
	}
	for _, ref := range within {
		if ref == sc.Ref {
			return nil, within
		}
	}
	return doc.Components.Schemas.SchemaFromRef(sc.Ref), append(within[:len(within):len(within)], sc.Ref)
}

func typeName(sc *huma.Schema) string {
	name := sc.Type
	if name == "" {
		name = "any"
	}
	if name == "array" && sc.Items != nil && sc.Items.Type != "" {
		name = sc.Items.Type + "[]"
	}
	if len(sc.Enum) > 0 {
		values := make([]string, len(sc.Enum))
		for i, v := range sc.Enum {
			values[i], _ = v.(string)
		}
		name = strings.Join(values, " | ")
	}
	if sc.Nullable {
		name += " or null"
	}
	return name
}

func (s *server) getDocs(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	w.Write(s.docs)
}
