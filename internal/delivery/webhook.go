package delivery

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// maxAnswer is how many bytes of a web hook's answer are read, so that the connection can be reused.
const maxAnswer = 64 << 10

// Webhooks returns the routes to URLs. Messages are posted in the form that Amazon SNS sends to its subscribers, so that
// listeners to alarms on AWS work here.
func Webhooks(client *http.Client) []Route {
	tell := func(ctx context.Context, d Debt) error { return post(ctx, client, d) }
	return []Route{{"http://", tell}, {"https://", tell}}
}

// notification is an SNS message. Its field names are SNS's.
type notification struct {
	Type      string
	MessageID string `json:"MessageId"`
	TopicArn  string
	Subject   string
	Message   string
	Timestamp string
}

func post(ctx context.Context, client *http.Client, d Debt) error {
	body, err := json.Marshal(notification{
		Type:      "Notification",
		MessageID: uuid.NewString(),
		TopicArn:  d.Source,
		Subject:   d.Subject,
		Message:   d.Body,
		Timestamp: time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
	})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.Destination, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "text/plain; charset=UTF-8") // as SNS does
	r.Header.Set("x-amz-sns-message-type", "Notification")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()                                   //nolint:errcheck // it was only read
	io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) //nolint:errcheck // reading only keeps the connection reusable
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s answered %s", d.Destination, answer.Status)
	}
	return nil
}
