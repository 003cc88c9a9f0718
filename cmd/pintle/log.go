package main

import (
	"io"
	"log/slog"
)

// newLogger returns a log in which errors of calls read as they do on the screen, without the SDK's words around them.
func newLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: plainError}))
}

func plainError(_ []string, a slog.Attr) slog.Attr {
	if err, isError := a.Value.Any().(error); isError {
		a.Value = slog.StringValue(messageOf(err))
	}
	return a
}
