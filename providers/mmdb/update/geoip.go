package update

import (
	"context"
	"crypto/md5" //nolint:gosec // the protocol's checksum, not for security
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// edition updates a file by the protocol of geoipupdate, versions 7 and 8.
func (j *job) edition(ctx context.Context) error {
	host := strings.TrimSuffix(j.Host, "/")
	text, err := j.text(ctx, host+"/geoip/updates/metadata?"+url.Values{"edition_id": {j.Edition}}.Encode())
	if err != nil {
		return err
	}
	var metadata struct {
		Databases []struct {
			Edition string `json:"edition_id"`
			MD5     string `json:"md5"`
			Date    string `json:"date"`
		} `json:"databases"`
	}
	if err := json.Unmarshal(text, &metadata); err != nil {
		return errors.New("the metadata of the publisher are no JSON of the documented form")
	}
	if n := len(metadata.Databases); n != 1 || metadata.Databases[0].Edition != j.Edition {
		return fmt.Errorf("the publisher knows %d editions %q: check its name", n, j.Edition)
	}
	is := metadata.Databases[0]
	is.MD5 = strings.ToLower(is.MD5)
	if len(is.MD5) != 2*md5.Size {
		return errors.New("the metadata of the publisher have no checksum")
	}
	if sum, err := md5Of(j.File); err == nil && sum == is.MD5 && !j.force {
		return errUnchanged
	}
	address := host + "/geoip/databases/" + url.PathEscape(j.Edition) + "/download?" +
		"date=" + url.QueryEscape(strings.ReplaceAll(is.Date, "-", "")) + "&suffix=tar.gz"
	return j.take(ctx, address, http.Header{}, is.MD5)
}

// md5Of returns the MD5 of a file in hexadecimal.
func md5Of(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	h := md5.New() //nolint:gosec // see above
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}
