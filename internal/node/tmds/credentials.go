package tmds

import "net/http"

// roleCredentials is the form in which the SDKs read credentials.
type roleCredentials struct {
	RoleArn         string
	AccessKeyID     string `json:"AccessKeyId"`
	SecretAccessKey string
	Token           string
	Expiration      string
}

// credentials serves a role's credentials to whoever knows their id. Only the task's containers do.
func (s *Server) credentials(w http.ResponseWriter, r *http.Request) {
	c, task, ok := s.opts.Tasks.Credentials(r.PathValue("id"))
	if !ok || !s.serves(task) {
		write(w, http.StatusNotFound, map[string]any{
			"code": "InvalidIdInRequest", "message": "there are no credentials with this id", "HTTPErrorCode": http.StatusNotFound,
		})
		return
	}
	write(w, http.StatusOK, roleCredentials{c.RoleArn, c.AccessKeyID, c.SecretAccessKey, c.SessionToken, c.Expiration})
}
