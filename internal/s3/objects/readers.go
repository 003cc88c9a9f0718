package objects

import (
	"context"
	"database/sql"
	"sync"
)

// readers are the connections for reading. They keep statements prepared, since SQLite takes longer to parse one than to answer it. There are as
// many as there are texts in this package.
type readers struct {
	*sql.DB

	mu       sync.RWMutex
	prepared map[string]*sql.Stmt
}

// statement returns the statement with a text. Closing the connections closes it.
func (r *readers) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	r.mu.RLock()
	s := r.prepared[text]
	r.mu.RUnlock()
	if s != nil {
		return s, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.prepared[text]; s != nil {
		return s, nil
	}
	s, err := r.PrepareContext(ctx, text)
	if err == nil {
		r.prepared[text] = s
	}
	return s, err
}

func (r *readers) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	s, err := r.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

func (r *readers) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	s, err := r.statement(ctx, text)
	if err != nil {
		return r.DB.QueryRowContext(ctx, text, args...) // whose row has the error
	}
	return s.QueryRowContext(ctx, args...)
}
