import "reflect-metadata";
import { dirname, join } from "node:path";
import { NestFactory } from "@nestjs/core";
import type { NestExpressApplication } from "@nestjs/platform-express";
import { AppModule } from "./app.module";

/** The service, and the page in front of it, with the package that the page imports. */
async function main(page: string, port: number): Promise<void> {
  const app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: ["error", "warn"] });
  app.useStaticAssets(page);
  app.useStaticAssets(join(dirname(require.resolve("switchgear/package.json")), "dist/wasm"), {
    prefix: "/switchgear",
  });
  app.enableShutdownHooks();
  await app.listen(port, "127.0.0.1");
  console.log(`listening on ${await app.getUrl()}`);
}

void main(process.argv[2] ?? "page", Number(process.argv[3] ?? 3000));
