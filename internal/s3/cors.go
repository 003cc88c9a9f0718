package s3

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/wire/model"
)

// notAllowed is S3's message, with its spelling.
const notAllowed = "CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, request method / " +
	"Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec."

// AllowOrigin returns the headers by which a browser lets a page of another origin call and see the answer. They follow from the first
// of the bucket's CORS rules that allows the call. If none does, the error is S3's answer to a preflight.
func (s *Service) AllowOrigin(ctx context.Context, call model.CrossOrigin) (map[string]string, error) {
	b, err := s.store.Bucket(ctx, call.Bucket)
	if errors.Is(err, objects.ErrNoBucket) {
		return nil, forbidden(call, "BUCKET", "CORSResponse: Bucket not found")
	}
	if err != nil {
		return nil, err
	}
	text := b.Settings[corsRules]
	if text == nil {
		return nil, forbidden(call, "BUCKET", "CORSResponse: CORS is not enabled for this bucket.")
	}
	var c types.CORSConfiguration
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	for _, r := range c.CORSRules {
		if origin := allowedOrigin(r, call); origin != "" {
			return corsHeaders(r, origin, call.Headers), nil
		}
	}
	if call.Key == "" {
		return nil, forbidden(call, "BUCKET", notAllowed)
	}
	return nil, forbidden(call, "OBJECT", notAllowed)
}

func forbidden(call model.CrossOrigin, resource, message string) error {
	return &apiError{
		code:    "AccessForbidden",
		message: message,
		status:  http.StatusForbidden,
		detail:  map[string]string{"Method": call.Method, "ResourceType": resource},
	}
}

// allowedOrigin returns the origin that a rule allows a call from: the call's own, or * for all. It returns "" if the rule allows no
// such call.
func allowedOrigin(r types.CORSRule, call model.CrossOrigin) string {
	i := slices.IndexFunc(r.AllowedOrigins, func(allowed string) bool { return matchesWildcard(allowed, call.Origin) })
	if i < 0 || !slices.Contains(r.AllowedMethods, call.Method) {
		return ""
	}
	for _, h := range call.Headers {
		if !slices.ContainsFunc(r.AllowedHeaders, func(allowed string) bool { return matchesWildcard(strings.ToLower(allowed), h) }) {
			return ""
		}
	}
	if r.AllowedOrigins[i] == "*" {
		return "*"
	}
	return call.Origin
}

// matchesWildcard reports whether a text is the pattern, in which one * stands for any characters.
func matchesWildcard(pattern, text string) bool {
	before, after, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == text
	}
	return len(text) >= len(before)+len(after) && strings.HasPrefix(text, before) && strings.HasSuffix(text, after)
}

// corsHeaders returns what a rule tells a browser. Credentials are for origins that the rule names.
func corsHeaders(r types.CORSRule, origin string, asked []string) map[string]string {
	h := map[string]string{
		"Access-Control-Allow-Origin":  origin,
		"Access-Control-Allow-Methods": strings.Join(r.AllowedMethods, ", "),
		"Vary":                         "Origin, Access-Control-Request-Headers, Access-Control-Request-Method",
	}
	if origin != "*" {
		h["Access-Control-Allow-Credentials"] = "true"
	}
	if len(asked) > 0 {
		h["Access-Control-Allow-Headers"] = strings.Join(asked, ", ")
	}
	if len(r.ExposeHeaders) > 0 {
		h["Access-Control-Expose-Headers"] = strings.Join(r.ExposeHeaders, ", ")
	}
	if r.MaxAgeSeconds != nil {
		h["Access-Control-Max-Age"] = strconv.Itoa(int(aws.ToInt32(r.MaxAgeSeconds)))
	}
	return h
}

// checkWildcards refuses a rule's patterns that S3 refuses.
func checkWildcards(r types.CORSRule) error {
	for _, o := range r.AllowedOrigins {
		if strings.Count(o, "*") > 1 {
			return refuse(400, "InvalidRequest", "AllowedOrigin \"%s\" can not have more than one wildcard.", o)
		}
	}
	for _, h := range r.AllowedHeaders {
		if strings.Count(h, "*") > 1 {
			return refuse(400, "InvalidRequest", "AllowedHeader \"%s\" can not have more than one wildcard.", h)
		}
	}
	for _, h := range r.ExposeHeaders {
		if strings.Contains(h, "*") {
			return refuse(
				400, "InvalidRequest", "ExposeHeader \"%s\" contains wildcard. We currently do not support wildcard for ExposeHeader.", h,
			)
		}
	}
	return nil
}
