import createClient from "openapi-fetch";
import type { paths } from "./gatehouse.d.ts";

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8080" });

const { data, error } = await client.GET("/api/lookup", { params: { query: { q: "8.8.8.8" } } });
if (data) {
  console.log(data.query, data.location?.city, data.location?.lat);
} else {
  console.log(error.error);
}

const bulk = await client.POST("/api/bulk", { body: { queries: ["8.8.4.4", "printer.local"] } });
for (const found of bulk.data?.results ?? []) {
  if (found.ok) {
    console.log(found.query, found.location?.city);
  } else {
    console.log(found.query, found.error);
  }
}

const refused = await client.GET("/api/lookup", { params: { query: { q: "10.0.0.1" } } });
console.log(refused.response.status, refused.error?.error);

const token = "ACCESS_TOKEN";
const profile = await client.GET("/api/user", {
  headers: { Authorization: `Bearer ${token}` },
});
console.log(profile.data?.name, profile.data?.email);
