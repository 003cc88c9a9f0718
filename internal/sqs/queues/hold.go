package queues

import "github.com/pintle/pintle/internal/backup"

// Hold holds the store for a backup: nothing is acknowledged until it's resumed, and no file is removed until it's released.
func (s *Store) Hold() (backup.Held, error) { return s.log.Hold(), nil }
