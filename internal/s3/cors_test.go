package s3

import (
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/wire/model"
)

// TestAllowOrigin: the first rule that allows a page's call tells what its browser is to know.
func TestAllowOrigin(t *testing.T) {
	s, _ := newService(t)
	ask := func(origin, method string, headers ...string) model.CrossOrigin {
		return model.CrossOrigin{Bucket: *theBucket, Key: "k", Origin: origin, Method: method, Headers: headers}
	}
	_, err := s.AllowOrigin(t.Context(), ask("https://a.test", "GET"))
	refusal{"AccessForbidden", "ResourceType", "BUCKET", "CORS is not enabled for this bucket."}.check(t, "no rules", err)
	_, err = s.AllowOrigin(t.Context(), model.CrossOrigin{Bucket: "absent", Origin: "https://a.test", Method: "GET"})
	refusal{"AccessForbidden", "Method", "GET", "Bucket not found"}.check(t, "no bucket", err)

	putCORS(t, s, types.CORSRule{
		AllowedOrigins: []string{"https://a.test", "https://*.b.test"},
		AllowedMethods: []string{"GET", "PUT"},
		AllowedHeaders: []string{"X-Amz-*", "content-md5"},
		MaxAgeSeconds:  aws.Int32(3000),
	}, types.CORSRule{
		AllowedOrigins: []string{"*"},
		AllowedMethods: []string{"HEAD"},
		ExposeHeaders:  []string{"ETag", "x-amz-request-id"},
	})
	const vary = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method"
	named := map[string]string{
		"Access-Control-Allow-Origin":      "https://a.test",
		"Access-Control-Allow-Methods":     "GET, PUT",
		"Access-Control-Allow-Credentials": "true",
		"Access-Control-Max-Age":           "3000",
		"Vary":                             vary,
	}
	with := func(name, value string) map[string]string {
		h := maps.Clone(named)
		h[name] = value
		return h
	}
	for _, c := range []struct {
		name string
		ask  model.CrossOrigin
		want map[string]string // nil if it's not allowed
	}{
		{"a named origin", ask("https://a.test", "PUT"), named},
		{"a wildcard", ask("https://www.b.test", "GET"), with("Access-Control-Allow-Origin", "https://www.b.test")},
		{"a wildcard's end", ask("https://www.b.test/", "GET"), nil},
		{"another scheme", ask("http://a.test", "GET"), nil},
		{"another method", ask("https://a.test", "DELETE"), nil},
		{"headers", ask("https://a.test", "PUT", "x-amz-acl", "content-md5"), with("Access-Control-Allow-Headers", "x-amz-acl, content-md5")},
		{"another header", ask("https://a.test", "PUT", "x-amz-acl", "range"), nil},
		{"all origins", ask("https://a.test", "HEAD"), map[string]string{
			"Access-Control-Allow-Origin":   "*",
			"Access-Control-Allow-Methods":  "HEAD",
			"Access-Control-Expose-Headers": "ETag, x-amz-request-id",
			"Vary":                          vary,
		}},
	} {
		got, err := s.AllowOrigin(t.Context(), c.ask)
		if c.want == nil {
			refusal{"AccessForbidden", "ResourceType", "OBJECT", "This CORS request is not allowed."}.check(t, c.name, err)
		} else if err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v %v, want %v", c.name, got, err, c.want)
		}
	}
}

func putCORS(t *testing.T, s *Service, rules ...types.CORSRule) {
	t.Helper()
	_, err := s.PutBucketCors(t.Context(), &s3.PutBucketCorsInput{
		Bucket: theBucket, CORSConfiguration: &types.CORSConfiguration{CORSRules: rules},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCORSWildcards: an origin and a header have one wildcard at most, and headers to expose none.
func TestCORSWildcards(t *testing.T) {
	s, _ := newService(t)
	for _, c := range []struct {
		name string
		rule types.CORSRule
		want string
	}{
		{"origin", types.CORSRule{AllowedOrigins: []string{"http://*.*"}}, `AllowedOrigin "http://*.*" can not have more`},
		{"header", types.CORSRule{AllowedOrigins: []string{"*"}, AllowedHeaders: []string{"*-*"}}, `AllowedHeader "*-*" can not have more`},
		{"exposed", types.CORSRule{AllowedOrigins: []string{"*"}, ExposeHeaders: []string{"*"}}, `ExposeHeader "*" contains wildcard.`},
	} {
		c.rule.AllowedMethods = []string{"GET"}
		_, err := s.PutBucketCors(t.Context(), &s3.PutBucketCorsInput{
			Bucket: theBucket, CORSConfiguration: &types.CORSConfiguration{CORSRules: []types.CORSRule{c.rule}},
		})
		refusal{"InvalidRequest", "", "", c.want}.check(t, c.name, err)
	}
}
