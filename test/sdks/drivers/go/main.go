// Makes the calls that it reads from standard input with one SDK of Go, and prints what became of each as a line of JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	goopenai "github.com/sashabaranov/go-openai"
)

type call struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Key     string `json:"key"`
	Model   string `json:"model"`
	Size    int    `json:"size"`
	Retries *int   `json:"retries"`
}

type result map[string]any

var parameters = map[string]any{
	"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"},
}

func (c call) content() string {
	if c.Size > 0 {
		return strings.Repeat("x", c.Size)
	}
	return "hello"
}

func toolOf(name, arguments string) (result, error) {
	var parsed map[string]any
	err := json.Unmarshal([]byte(arguments), &parsed)
	return result{"name": name, "arguments": parsed}, err
}

func official(base string, c call) (result, error) {
	ctx := context.Background()
	retries := 2
	if c.Retries != nil {
		retries = *c.Retries
	}
	client := openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey(c.Key),
		option.WithMaxRetries(retries), option.WithHeader("X-Scenario", c.ID))
	params := openai.ChatCompletionNewParams{
		Model: c.Model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(c.content())},
	}
	switch c.Kind {
	case "chat":
		it, err := client.Chat.Completions.New(ctx, params)
		if err != nil {
			return nil, err
		}
		return result{"content": it.Choices[0].Message.Content, "tokens": it.Usage.TotalTokens}, nil
	case "stream":
		pieces := []string{}
		params.StreamOptions.IncludeUsage = openai.Bool(true)
		stream := client.Chat.Completions.NewStreaming(ctx, params)
		for stream.Next() {
			// The last one has the usage, and no choice.
			for _, choice := range stream.Current().Choices {
				if choice.Delta.Content != "" {
					pieces = append(pieces, choice.Delta.Content)
				}
			}
		}
		return result{"pieces": pieces}, stream.Err()
	case "models":
		it, err := client.Models.List(ctx)
		if err != nil {
			return nil, err
		}
		return result{"ids": []string{it.Data[0].ID}}, nil
	case "embeddings":
		it, err := client.Embeddings.New(ctx, openai.EmbeddingNewParams{
			Model: c.Model, Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("hello")},
		})
		if err != nil {
			return nil, err
		}
		return result{"values": it.Data[0].Embedding}, nil
	case "tool":
		params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(
			openai.FunctionDefinitionParam{Name: "weather", Parameters: parameters})}
		it, err := client.Chat.Completions.New(ctx, params)
		if err != nil {
			return nil, err
		}
		made := it.Choices[0].Message.ToolCalls[0].Function
		return toolOf(made.Name, made.Arguments)
	}
	return nil, fmt.Errorf("no such call: %s", c.Kind)
}

type marked struct{ id string }

func (m marked) RoundTrip(req *http.Request) (*http.Response, error) {
	req.Header.Set("X-Scenario", m.id)
	return http.DefaultTransport.RoundTrip(req)
}

func community(base string, c call) (result, error) {
	ctx := context.Background()
	config := goopenai.DefaultConfig(c.Key)
	config.BaseURL = base + "/v1"
	config.HTTPClient = &http.Client{Transport: marked{c.ID}}
	client := goopenai.NewClientWithConfig(config)
	request := goopenai.ChatCompletionRequest{
		Model: c.Model, Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: c.content()}},
	}
	switch c.Kind {
	case "chat":
		it, err := client.CreateChatCompletion(ctx, request)
		if err != nil {
			return nil, err
		}
		return result{"content": it.Choices[0].Message.Content, "tokens": it.Usage.TotalTokens}, nil
	case "stream":
		request.StreamOptions = &goopenai.StreamOptions{IncludeUsage: true}
		stream, err := client.CreateChatCompletionStream(ctx, request)
		if err != nil {
			return nil, err
		}
		defer stream.Close()
		pieces := []string{}
		for {
			it, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return result{"pieces": pieces}, nil
			}
			if err != nil {
				return nil, err
			}
			for _, choice := range it.Choices {
				if choice.Delta.Content != "" {
					pieces = append(pieces, choice.Delta.Content)
				}
			}
		}
	case "models":
		it, err := client.ListModels(ctx)
		if err != nil {
			return nil, err
		}
		return result{"ids": []string{it.Models[0].ID}}, nil
	case "embeddings":
		it, err := client.CreateEmbeddings(ctx, goopenai.EmbeddingRequestStrings{
			Model: goopenai.EmbeddingModel(c.Model), Input: []string{"hello"},
		})
		if err != nil {
			return nil, err
		}
		return result{"values": it.Data[0].Embedding}, nil
	case "tool":
		request.Tools = []goopenai.Tool{{Type: "function", Function: &goopenai.FunctionDefinition{
			Name: "weather", Parameters: parameters}}}
		it, err := client.CreateChatCompletion(ctx, request)
		if err != nil {
			return nil, err
		}
		made := it.Choices[0].Message.ToolCalls[0].Function
		return toolOf(made.Name, made.Arguments)
	}
	return nil, fmt.Errorf("no such call: %s", c.Kind)
}

func described(err error) result {
	said := result{"class": fmt.Sprintf("%T", err), "status": nil, "code": nil, "type": nil, "message": err.Error()}
	var theirs *openai.Error
	if errors.As(err, &theirs) {
		said["status"], said["code"], said["type"], said["message"] = theirs.StatusCode, theirs.Code, theirs.Type, theirs.Message
	}
	var others *goopenai.APIError
	if errors.As(err, &others) {
		said["status"], said["code"], said["type"], said["message"] = others.HTTPStatusCode, others.Code, others.Type, others.Message
		if others.HTTPStatusCode == 0 {
			said["status"] = nil
		}
	}
	return said
}

func main() {
	var given struct {
		SDK   string `json:"sdk"`
		Base  string `json:"base"`
		Calls []call `json:"calls"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		panic(err)
	}
	make := map[string]func(string, call) (result, error){"openai-go": official, "go-openai": community}[given.SDK]
	out := json.NewEncoder(os.Stdout)
	for _, each := range given.Calls {
		it, err := make(given.Base, each)
		if err != nil {
			_ = out.Encode(result{"id": each.ID, "error": described(err)})
		} else {
			_ = out.Encode(result{"id": each.ID, "ok": it})
		}
	}
}
