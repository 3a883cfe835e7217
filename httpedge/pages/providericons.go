package pages

import "html/template"

// providerIcons are the pictures of well-known providers.
var providerIcons = map[string]template.HTML{
	"google":    `<svg viewBox="0 0 48 48" aria-hidden="true"><path fill="#4285f4" d="M45.1 24.5c0-1.6-.1-3.1-.4-4.5H24v8.5h11.8a10.1 10.1 0 0 1-4.4 6.6v5.5h7.1c4.2-3.8 6.6-9.5 6.6-16.1z"/><path fill="#34a853" d="M24 46c5.9 0 10.9-2 14.5-5.4l-7.1-5.5c-2 1.3-4.5 2.1-7.4 2.1-5.7 0-10.5-3.8-12.2-9H4.5v5.7A22 22 0 0 0 24 46z"/><path fill="#fbbc05" d="M11.8 28.2a13.2 13.2 0 0 1 0-8.4v-5.7H4.5a22 22 0 0 0 0 19.8z"/><path fill="#ea4335" d="M24 10.8c3.2 0 6.1 1.1 8.4 3.3l6.3-6.3A22 22 0 0 0 4.5 14.1l7.3 5.7c1.7-5.2 6.5-9 12.2-9z"/></svg>`,
	"microsoft": `<svg viewBox="0 0 21 21" aria-hidden="true"><path fill="#f25022" d="M0 0h10v10H0z"/><path fill="#7fba00" d="M11 0h10v10H11z"/><path fill="#00a4ef" d="M0 11h10v10H0z"/><path fill="#ffb900" d="M11 11h10v10H11z"/></svg>`,
	"github":    `<svg viewBox="0 0 16 16" aria-hidden="true"><path fill="currentColor" d="M8 0a8 8 0 0 0-2.5 15.6c.4.1.5-.2.5-.4v-1.5c-2 .4-2.5-.5-2.7-1-.1-.2-.5-1-.8-1.1-.3-.2-.7-.5 0-.5.6 0 1 .6 1.2.8.7 1.2 1.8.9 2.3.7 0-.5.2-.9.5-1.1-1.8-.2-3.6-.9-3.6-4 0-.9.3-1.6.8-2.1-.1-.2-.4-1 .1-2.1 0 0 .7-.2 2.2.8a7.4 7.4 0 0 1 4 0c1.5-1 2.2-.8 2.2-.8.4 1.1.2 1.9.1 2.1.5.6.8 1.3.8 2.1 0 3.1-1.9 3.8-3.6 4 .3.2.5.7.5 1.5v2.2c0 .2.1.5.5.4A8 8 0 0 0 8 0z"/></svg>`,
	"gitlab":    `<svg viewBox="0 0 24 24" aria-hidden="true"><path fill="#e24329" d="M12 23 16.4 9.4H7.6z"/><path fill="#fc6d26" d="M12 23 7.6 9.4H1.4zM12 23l4.4-13.6h6.2z"/><path fill="#fca326" d="M1.4 9.4.1 13.5a.9.9 0 0 0 .3 1L12 23zM22.6 9.4l1.3 4.1a.9.9 0 0 1-.3 1L12 23z"/><path fill="#e24329" d="M1.4 9.4h6.2L4.9 1.2a.5.5 0 0 0-.9 0zM22.6 9.4h-6.2l2.7-8.2a.5.5 0 0 1 .9 0z"/></svg>`,
}
