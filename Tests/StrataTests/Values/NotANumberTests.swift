import Foundation
import Strata
import Testing

private enum Quotes {
    struct Price: Codable, Equatable {
        var amount: Decimal
        var rate: Double
    }

    @Model final class Quote {
        var list: [Decimal] = []
        var price: Price?
        var note: [String] = []
        init() {}
    }
}

/// Values in JSON that are not a number, on every store.
@Suite @MainActor struct NotANumberTests {
    /// Catches: JSON with NaN, which the encoder writes for decimals, and which no reader takes for JSON.
    @Test(arguments: TestStore.allCases)
    func `S173: decimals that are not a number are read again as they were saved`(_ store: TestStore) async throws {
        try await store.use { description in
            let container = try await PersistentContainer(model: Model([Quotes.Quote.self]), store: description)
            let quote = Quotes.Quote()
            quote.list = [1, .nan, -2]
            quote.price = Quotes.Price(amount: .nan, rate: .nan)
            // Text with the same letters stays text.
            quote.note = ["NaN", "nan"]
            container.mainContext.insert(quote)
            let prices = try container.collection("prices", of: Quotes.Price.self)
            prices["a"] = Quotes.Price(amount: .nan, rate: 1)
            try await container.mainContext.save()
            let id = quote.id
            try await container.read { context in
                let quote = try #require(context.model(for: id) as? Quotes.Quote)
                let list = quote.list
                #expect(list.count == 3 && list[0] == 1 && list[1].isNaN && list[2] == -2)
                #expect(quote.price?.amount.isNaN == true && quote.price?.rate.isNaN == true && quote.note == ["NaN", "nan"])
                let price = try context.collection("prices", of: Quotes.Price.self).value(forKey: "a")
                #expect(price?.amount.isNaN == true && price?.rate == 1)
            }
            try await container.close()
        }
    }
}
