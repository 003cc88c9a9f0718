package instancetype

import (
	"encoding/json"
	"fmt"
	"os"
)

// ReadPrices reads the hourly prices of instance types, in any currency. The file is a JSON object such as
// {"g4dn.xlarge": 0.526}.
func ReadPrices(path string) (map[string]float64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var written map[string]any
	if err := json.Unmarshal(b, &written); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	prices := map[string]float64{}
	for name, price := range written {
		if _, err := Lookup(name); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		number, ok := price.(float64)
		if !ok || number <= 0 {
			return nil, fmt.Errorf("%s: %s: the price %v must be a number above 0", path, name, price)
		}
		prices[name] = number
	}
	return prices, nil
}
