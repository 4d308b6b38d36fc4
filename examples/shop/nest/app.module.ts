import { Controller, Get, Inject, Module, Param } from "@nestjs/common";
import { Redis } from "ioredis";
import { CircuitBreakerModule } from "switchgear/nestjs";
import { BillingService } from "./billing.service";

@Controller()
class BillingController {
  constructor(@Inject(BillingService) private readonly billing: BillingService) {}

  /** A refusal becomes a 503 with `Retry-After` by itself. */
  @Get("charge/:order")
  async charge(@Param("order") order: string): Promise<{ outcome: string }> {
    return { outcome: await this.billing.charge(order) };
  }
}

@Module({
  imports: [
    CircuitBreakerModule.forRootAsync({
      useFactory: () => ({
        redis: new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379"),
        prefix: "shop:",
        shared: { timeoutMs: Number(process.env.STORE_TIMEOUT_MS ?? 100) },
        circuits: {
          billing: {
            tripOn: "consecutive",
            failureThreshold: 3,
            openDurationMs: Number(process.env.OPEN_MS ?? 10_000),
          },
        },
        on: {
          stateChange: ({ circuit, fromState, toState }) => console.log(`${circuit}: ${fromState} -> ${toState}`),
        },
      }),
    }),
  ],
  controllers: [BillingController],
  providers: [BillingService],
})
export class AppModule {}
