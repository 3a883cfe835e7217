// Package bulklookupclient is a consumer of the geolocation service: it asks where addresses and domains are, one at a
// time or up to 50 at once.
package bulklookupclient
