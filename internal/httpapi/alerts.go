package httpapi

import (
	"context"
	"maps"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"sidetone/internal/alert"
	"sidetone/internal/webhook"
)

// maxAlertPage is how many rows a page of the alert lists has at most: api.md "Conventions".
const maxAlertPage = 100

// maxRuleBody bounds the body of a rule, in bytes: 50 headers and a long URL are far below it.
const maxRuleBody = 1 << 20

func (s *server) registerAlerts(api huma.API) {
	fields := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[ruleFields](), true, "AlertRuleFields")
	op := func(id, method, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Tags: []string{"Alerts"}, Summary: summary}
	}
	// The domain reads these bodies itself: it tells an absent field from null, and names every wrong one.
	withRule := func(o huma.Operation, schema *huma.Schema, doc string) huma.Operation {
		o.RequestBody = &huma.RequestBody{Required: true, Description: doc, Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
		o.SkipValidateBody, o.MaxBodyBytes = true, maxRuleBody
		return o
	}
	register(api, op("list-alert-rules", http.MethodGet, "/api/alert-rules", "List alert rules"), s.listRules)
	create := withRule(op("create-alert-rule", http.MethodPost, "/api/alert-rules", "Create an alert rule"),
		fields, "A rule; an absent field takes its default.")
	create.DefaultStatus = http.StatusCreated
	register(api, create, s.createRule)
	register(api, op("get-alert-rule", http.MethodGet, "/api/alert-rules/{id}", "One alert rule"), s.getRule)
	register(api, withRule(op("patch-alert-rule", http.MethodPatch, "/api/alert-rules/{id}", "Change some fields of an alert rule"),
		someOf(api, fields), "Fields of a rule: an absent field keeps its value, null clears it."), s.patchRule)
	register(api, op("delete-alert-rule", http.MethodDelete, "/api/alert-rules/{id}", "Delete an alert rule with its firings and attempts"), s.deleteRule)
	register(api, op("list-firings", http.MethodGet, "/api/alert-rules/{id}/firings", "The firings of a rule, newest first"), s.listFirings)
	register(api, op("test-alert-rule", http.MethodPost, "/api/alert-rules/{id}/test", "Send a test to the rule's webhook and wait for the answer"), s.testRule)
	preview := withRule(op("preview-alert-rule", http.MethodPost, "/api/alert-rules/preview", "What a rule would have measured, and when it would have fired"),
		someOf(api, fields, "from", "to", "step_seconds"),
		"The fields of a rule (metric, threshold_value and window_minutes at least), and from, to (RFC 3339, at most 14 days apart, default the last 24 hours) and step_seconds.")
	register(api, preview, s.previewRule)
	register(api, op("redeliver-firing", http.MethodPost, "/api/alerts/firings/{id}/redeliver", "Queue the delivery of a firing again"), s.redeliver)
	register(api, op("list-webhook-attempts", http.MethodGet, "/api/alerts/webhook-attempts", "Delivery attempts of all rules, newest first"), s.listAttempts)
	register(api, op("get-webhook-stats", http.MethodGet, "/api/alerts/webhook-stats", "How deliveries went"), s.webhookStats)
}

// someOf is a schema in which no field is required and which may have more of them.
func someOf(api huma.API, ref *huma.Schema, more ...string) *huma.Schema {
	schema := *api.OpenAPI().Components.Schemas.SchemaFromRef(ref.Ref)
	schema.Required, schema.Properties = nil, maps.Clone(schema.Properties)
	for _, name := range more {
		schema.Properties[name] = &huma.Schema{}
	}
	return &schema
}

type ruleBodyInput struct {
	RawBody []byte
}

type ruleChangeInput struct {
	AlertPath
	RawBody []byte
}

// AlertPath is the id of a rule or a firing in a path. It has no format, because a wrong one is a 404 and not a 400.
type AlertPath struct {
	ID string `path:"id" doc:"A UUID"`
}

type ruleOutput struct {
	Body struct {
		Envelope
		RuleView
	}
}

func newRuleOutput(ctx context.Context, s *server, r alert.Rule) *ruleOutput {
	out := &ruleOutput{}
	out.Body.Envelope, out.Body.RuleView = envelopeOf(ctx), viewRule(&r, s.Now())
	return out
}

func (s *server) createRule(ctx context.Context, in *ruleBodyInput) (*ruleOutput, error) {
	r, err := s.Alerts.Create(ctx, in.RawBody, s.Now())
	if err != nil {
		return nil, err
	}
	return newRuleOutput(ctx, s, r), nil
}

func (s *server) getRule(ctx context.Context, in *AlertPath) (*ruleOutput, error) {
	r, err := s.Alerts.Rule(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return newRuleOutput(ctx, s, r), nil
}

func (s *server) patchRule(ctx context.Context, in *ruleChangeInput) (*ruleOutput, error) {
	r, err := s.Alerts.Patch(ctx, in.ID, in.RawBody, s.Now())
	if err != nil {
		return nil, err
	}
	return newRuleOutput(ctx, s, r), nil
}

type deletedRuleOutput struct {
	Body struct {
		Envelope
		Deleted bool `json:"deleted"`
	}
}

func (s *server) deleteRule(ctx context.Context, in *AlertPath) (*deletedRuleOutput, error) {
	if err := s.Alerts.Delete(ctx, in.ID); err != nil {
		return nil, err
	}
	out := &deletedRuleOutput{}
	out.Body.Envelope, out.Body.Deleted = envelopeOf(ctx), true
	return out, nil
}

type listRulesInput struct {
	RequestURL
	PageParams
	AgentID   string `query:"agent_id" doc:"Rules of exactly this agent"`
	AccountID string `query:"account_id" doc:"Rules of exactly this account"`
	Enabled   string `query:"enabled" doc:"true or false"`
	Metric    string `query:"metric"`
}

func (s *server) listRules(ctx context.Context, in *listRulesInput) (*listOutput[RuleView], error) {
	limit, offset, err := in.page(maxAlertPage)
	if err != nil {
		return nil, err
	}
	var q queryReader
	f := alert.RuleFilter{AgentID: in.AgentID, AccountID: in.AccountID, Enabled: q.bool("enabled", in.Enabled),
		Metric: alert.Metric(q.oneOf("metric", in.Metric, metricNames()...))}
	if err := q.err(); err != nil {
		return nil, err
	}
	rules, total, err := s.Alerts.Rules(ctx, f, alert.Page{Limit: limit, Offset: offset})
	if err != nil {
		return nil, err
	}
	views := make([]RuleView, len(rules))
	for i := range rules {
		views[i] = viewRule(&rules[i], s.Now())
	}
	return newList(ctx, in.url, limit, offset, total, views), nil
}

type listFiringsInput struct {
	RequestURL
	AlertPath
	PageParams
}

func (s *server) listFirings(ctx context.Context, in *listFiringsInput) (*listOutput[FiringView], error) {
	limit, offset, err := in.page(maxAlertPage)
	if err != nil {
		return nil, err
	}
	firings, total, err := s.Alerts.Firings(ctx, in.ID, alert.Page{Limit: limit, Offset: offset})
	if err != nil {
		return nil, err
	}
	views := make([]FiringView, len(firings))
	for i := range firings {
		views[i] = viewFiring(&firings[i])
	}
	return newList(ctx, in.url, limit, offset, total, views), nil
}

type firingOutput struct {
	Body struct {
		Envelope
		FiringView
	}
}

func (s *server) redeliver(ctx context.Context, in *AlertPath) (*firingOutput, error) {
	f, err := s.Alerts.Redeliver(ctx, in.ID, s.Now())
	if err != nil {
		return nil, err
	}
	out := &firingOutput{}
	out.Body.Envelope, out.Body.FiringView = envelopeOf(ctx), viewFiring(&f)
	return out, nil
}

type testOutput struct {
	Body struct {
		Envelope
		OK             bool    `json:"ok"`
		ResponseStatus *int    `json:"response_status" doc:"null when no response came"`
		Error          *string `json:"error"`
		DurationMS     int64   `json:"duration_ms"`
	}
}

func (s *server) testRule(ctx context.Context, in *AlertPath) (*testOutput, error) {
	res, err := s.Alerts.Test(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	out := &testOutput{}
	out.Body.Envelope, out.Body.OK, out.Body.Error = envelopeOf(ctx), res.OK, orNull(res.Error)
	out.Body.ResponseStatus, out.Body.DurationMS = statusOrNull(res.ResponseStatus), res.Duration.Milliseconds()
	return out, nil
}

type previewOutput struct {
	Body struct {
		Envelope
		PreviewView
	}
}

func (s *server) previewRule(ctx context.Context, in *ruleBodyInput) (*previewOutput, error) {
	p, err := s.Alerts.Preview(ctx, in.RawBody, s.Now())
	if err != nil {
		return nil, err
	}
	out := &previewOutput{}
	out.Body.Envelope, out.Body.PreviewView = envelopeOf(ctx), viewPreview(&p)
	return out, nil
}

type listAttemptsInput struct {
	RequestURL
	PageParams
	RuleID   string `query:"rule_id"`
	FiringID string `query:"firing_id"`
	OK       string `query:"ok" doc:"true or false"`
	Kind     string `query:"kind" doc:"firing or test"`
}

func (s *server) listAttempts(ctx context.Context, in *listAttemptsInput) (*listOutput[attemptView], error) {
	limit, offset, err := in.page(maxAlertPage)
	if err != nil {
		return nil, err
	}
	var q queryReader
	f := alert.AttemptFilter{RuleID: in.RuleID, FiringID: in.FiringID, OK: q.bool("ok", in.OK),
		Kind: webhook.Kind(q.oneOf("kind", in.Kind, string(webhook.KindFiring), string(webhook.KindTest)))}
	if err := q.err(); err != nil {
		return nil, err
	}
	attempts, total, err := s.Alerts.Attempts(ctx, f, alert.Page{Limit: limit, Offset: offset})
	if err != nil {
		return nil, err
	}
	views := make([]attemptView, len(attempts))
	for i := range attempts {
		views[i] = viewAttempt(&attempts[i])
	}
	return newList(ctx, in.url, limit, offset, total, views), nil
}

type webhookStatsInput struct {
	Range string `query:"range" doc:"24h, 7d or 30d; default 7d"`
}

type webhookStatsOutput struct {
	Body struct {
		Envelope
		StatsView
	}
}

func (s *server) webhookStats(ctx context.Context, in *webhookStatsInput) (*webhookStatsOutput, error) {
	if in.Range == "" {
		in.Range = alert.DefaultStatsRange
	}
	st, err := s.Alerts.Stats(ctx, in.Range, s.Now())
	if err != nil {
		return nil, err
	}
	out := &webhookStatsOutput{}
	out.Body.Envelope, out.Body.StatsView = envelopeOf(ctx), viewStats(in.Range, &st)
	return out, nil
}
