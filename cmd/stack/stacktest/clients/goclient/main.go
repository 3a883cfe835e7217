// Command atlas looks up addresses and reads a profile with a client that oapi-codegen makes.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"atlas/gatehouse"
)

func main() {
	client, err := gatehouse.NewClientWithResponses("http://127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := lookUp(ctx, client, "8.8.8.8"); err != nil {
		log.Fatal(err)
	}
	if err := lookUpAll(ctx, client, "8.8.4.4", "printer.local"); err != nil {
		log.Fatal(err)
	}
	if err := lookUp(ctx, client, "10.0.0.1"); err != nil {
		log.Fatal(err)
	}
	if err := readProfile(ctx, client, "ACCESS_TOKEN"); err != nil {
		log.Fatal(err)
	}
}

func lookUp(ctx context.Context, client *gatehouse.ClientWithResponses, query string) error {
	response, err := client.LookupWithResponse(ctx, &gatehouse.LookupParams{Q: query})
	if err != nil {
		return err
	}
	if refused := response.JSON400; refused != nil {
		fmt.Println(response.StatusCode(), refused.Error)
		return nil
	}
	if response.JSON200 == nil {
		return fmt.Errorf("look up %s: %s", query, response.Status())
	}
	found, err := response.JSON200.AsLookupResult()
	if err != nil {
		return err
	}
	fmt.Println(found.Query, found.Location.City, found.Location.Lat)
	return nil
}

func lookUpAll(ctx context.Context, client *gatehouse.ClientWithResponses, queries ...string) error {
	response, err := client.BulkWithResponse(ctx, &gatehouse.BulkParams{},
		gatehouse.BulkJSONRequestBody{Queries: queries})
	if err != nil {
		return err
	}
	if response.JSON200 == nil {
		return fmt.Errorf("look up queries: %s", response.Status())
	}
	for _, element := range response.JSON200.Results {
		found, err := element.AsLookupResult()
		if err != nil {
			return err
		}
		if found.Ok {
			fmt.Println(found.Query, found.Location.City)
			continue
		}
		fault, err := element.AsLookupError()
		if err != nil {
			return err
		}
		fmt.Println(fault.Query, fault.Error)
	}
	return nil
}

func readProfile(ctx context.Context, client *gatehouse.ClientWithResponses, token string) error {
	authorize := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	response, err := client.BasicProfileWithResponse(ctx, authorize)
	if err != nil {
		return err
	}
	if response.JSON200 == nil {
		return fmt.Errorf("read the profile: %s", response.Status())
	}
	fmt.Println(response.JSON200.Name, *response.JSON200.Email)
	return nil
}
