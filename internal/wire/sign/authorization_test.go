package sign

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// FuzzAuthorization checks that nothing makes the parser panic, and that what it accepts is complete.
func FuzzAuthorization(f *testing.F) {
	f.Add(
		"AWS4-HMAC-SHA256 Credential=AK/20261121/us-east-1/ecs/aws4_request, SignedHeaders=host;x-amz-date, Signature=00",
		"20261121T120000Z", "",
	)
	f.Add(
		"", "",
		"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK%2F20261121%2Fus-east-1%2Fsts%2Faws4_request"+
			"&X-Amz-Date=20261121T120000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=00",
	)
	f.Add("AWS4-HMAC-SHA256 ,,=", "x", "%zz")
	f.Fuzz(func(t *testing.T, header, date, query string) {
		h := http.Header{"Authorization": {header}, "X-Amz-Date": {date}}
		a, err := parseAuthorization(h, query)
		if err != nil {
			return
		}
		if a.accessKeyID == "" || a.signature == "" || len(a.signedHeaders) == 0 || a.at.IsZero() || a.lifetime <= 0 {
			t.Fatalf("took %+v", a)
		}
		v := Verifier{Region: a.region, Now: func() time.Time { return a.at }, Lookup: lookupAny}
		if _, err := v.Verify(t.Context(), a.service, Signed{Method: "GET", Path: "/", RawQuery: query, Host: "x", Header: h}); err == nil {
			t.Fatal("a signature was guessed")
		}
	})
}

func lookupAny(context.Context, string, string) (Credential, error) {
	return Credential{SecretAccessKey: "secret"}, nil
}
