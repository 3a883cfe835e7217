package visit

import "strings"

// Known browsers and systems, by a word of their User-Agent. The first match counts.
var (
	browsers = [][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"},
		{"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"},
		{"Chrome/", "Chrome"}, {"CriOS/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}}
	systems = [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"},
		{"Windows", "Windows"}, {"Mac OS X", "macOS"},
		{"CrOS", "ChromeOS"}, {"Linux", "Linux"}}
)

// DeviceOf describes a User-Agent in a few words, so that a person recognizes the session.
func DeviceOf(userAgent string) string {
	browser, system := firstIn(browsers, userAgent), firstIn(systems, userAgent)
	switch {
	case browser == "" && system == "":
		return "Unknown browser"
	case browser == "":
		return "Browser on " + system
	case system == "":
		return browser
	}
	return browser + " on " + system
}

func firstIn(known [][2]string, text string) string {
	for _, k := range known {
		if strings.Contains(text, k[0]) {
			return k[1]
		}
	}
	return ""
}
