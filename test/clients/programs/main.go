// The typical tasks, with the client that oapi-codegen generates.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"llmp.test/client/llmp"
)

func check(isSo bool, what string, more ...any) {
	if !isSo {
		fmt.Fprintln(os.Stderr, append([]any{what}, more...)...)
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	check(err == nil, "failed:", err)
	return value
}

func to[T any](value T) *T { return &value }

var nextPage = regexp.MustCompile(`^<([^>]+)>; rel="next"$`)

// Reads the next event of a stream of server-sent events.
func nextEvent(stream io.Reader) llmp.Event {
	var event llmp.Event
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		if data, isData := strings.CutPrefix(lines.Text(), "data: "); isData {
			must(data, json.Unmarshal([]byte(data), &event))
			return event
		}
	}
	check(false, "the stream ended")
	return event
}

func main() {
	ctx := context.Background()
	label := os.Args[1]
	authorize := func(_ context.Context, req *http.Request) error {
		req.Header.Set("Authorization", "Bearer "+os.Getenv("LLMP_TOKEN"))
		return nil
	}
	client := must(llmp.NewClientWithResponses(os.Getenv("LLMP_URL"), llmp.WithRequestEditorFn(authorize)))
	now := time.Now().In(time.FixedZone("IST", 19800))
	at := func(hours int) *string { return to(now.Add(time.Duration(hours) * time.Hour).Format(time.RFC3339Nano)) }

	created := must(client.CreateProjectWithResponse(ctx, &llmp.CreateProjectParams{
		XLlmpActor:   to(llmp.FrontEnd("cli")),
		XAuditReason: to("a%20test"),
	}, llmp.ProjectCreate{Name: label, ApiKey: "sk-example-key-of-a-provider"}))
	check(created.JSON201 != nil, "no project", string(created.Body))
	project := created.JSON201

	ids := map[uuid.UUID]bool{}
	var id uuid.UUID
	for _, name := range []string{"one", "two", "three"} {
		token := must(client.CreateTokenWithResponse(ctx, nil, llmp.TokenCreate{
			ProjectId: to(project.Id), DurationHours: to(2), MaxRequests: to(10), Name: to(name),
		}))
		check(token.JSON201 != nil && strings.HasPrefix(token.JSON201.Token, "sk-wt-"), "no secret", string(token.Body))
		ids[token.JSON201.Id] = true
		if name == "one" {
			id = token.JSON201.Id
		}
	}

	params := llmp.ListTokensParams{
		Limit: to(2), ProjectId: to(project.Id.String()), ActiveOnly: to(true),
		Sort: to(llmp.ListTokensParamsSort("created_at")), ExpiresAfter: at(1), ExpiresBefore: to("3h"),
	}
	listed, pages := 0, 0
	for {
		page := must(client.ListTokensWithResponse(ctx, &params))
		check(page.JSON200 != nil, "no page", string(page.Body))
		for _, token := range *page.JSON200 {
			check(ids[token.Id], "another token", token.Id)
			listed++
		}
		pages++
		link := nextPage.FindStringSubmatch(page.HTTPResponse.Header.Get("Link"))
		if link == nil {
			break
		}
		params.Cursor = to(must(url.Parse(link[1])).Query().Get("cursor"))
	}
	check(pages == 2 && listed == 3, "wrong list", pages, listed)
	none := must(client.ListTokensWithResponse(ctx, &llmp.ListTokensParams{
		ProjectId: to(project.Id.String()), ExpiresBefore: at(1),
	}))
	check(none.JSON200 != nil && len(*none.JSON200) == 0, "a filter by a time with an offset", string(none.Body))

	shown := must(client.ReadTokenWithResponse(ctx, id, nil))
	check(shown.JSON200 != nil && string(shown.JSON200.State) == "active", "not shown", string(shown.Body))
	events := must(client.StreamEvents(ctx, &llmp.StreamEventsParams{TokenId: &id}))
	defer events.Body.Close()
	check(must(client.RevokeTokenWithResponse(ctx, id, nil)).JSON200 != nil, "not revoked")
	event := nextEvent(events.Body)
	change, isChange := must(event.ValueByDiscriminator()).(llmp.ChangeEvent)
	check(isChange && change.Kind == "token.revoked" && *change.TokenId == id, "another event", change)
	revoked := must(client.ReadTokenWithResponse(ctx, id, nil))
	check(revoked.JSON200 != nil && string(revoked.JSON200.State) == "revoked", "not revoked", string(revoked.Body))
	active := must(client.UpdateTokenWithResponse(ctx, id, nil, llmp.TokenPatch{IsActive: to(true)}))
	check(active.JSON200 != nil && active.JSON200.IsActive, "not reactivated", string(active.Body))

	usage := must(client.ReadUsageWithResponse(ctx, &llmp.ReadUsageParams{By: to("project"), Since: at(-1), Until: at(1)}))
	check(usage.JSON200 != nil, "no usage", string(usage.Body))
	var lines []llmp.UsageLine = *usage.JSON200
	check(len(lines) == 0, "usage before there was a request", lines)
	audit := must(client.ListAuditWithResponse(ctx, &llmp.ListAuditParams{
		Action: to(llmp.ListAuditParamsAction("token.revoke")), TokenId: &id, Since: at(-1), Until: at(1),
	}))
	check(audit.JSON200 != nil && len(*audit.JSON200) == 1, "no audit record", string(audit.Body))
	purged := must(client.PurgeCacheWithResponse(ctx, nil, llmp.CachePurge{ProjectId: &project.Id}))
	check(purged.JSON200 != nil && purged.JSON200.PurgedCount == 0, "not purged", string(purged.Body))

	missing := must(client.ReadTokenWithResponse(ctx, uuid.MustParse("00000000-0000-4000-8000-000000000000"), nil))
	check(missing.JSON404 != nil && missing.JSON404.Code == llmp.ProblemCodeNotFound, "no 404", string(missing.Body))
	taken := must(client.CreateProjectWithResponse(ctx, nil, llmp.ProjectCreate{Name: label, ApiKey: "another"}))
	check(taken.JSON409 != nil && taken.JSON409.Code == llmp.ProblemCodeNameTaken, "no 409", string(taken.Body))
	fmt.Println("the main job is done")
}
