import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

private enum Mood: String, AttributeValue { case calm, wild }
private enum Level: Int8, AttributeValue { case low = -1, high = 1 }
private struct Place: CodableAttribute, Equatable { var x: Int, name: String }
private struct Share: CodableAttribute { var part: Double }

/// Swift values are unchanged after they are stored in a column and read.
@Suite struct ModelAttributeValueTests {
    private func keeps<T: AttributeValue & Equatable>(_ values: T..., at location: SourceLocation = #_sourceLocation) {
        for value in values {
            #expect(T(value.storeValue) == value, sourceLocation: location)
            #expect(T?(Optional(value).storeValue) == .some(.some(value)), sourceLocation: location)
        }
        #expect(T(.null) == nil, sourceLocation: location)
        #expect(T?(.null) == .some(.none), sourceLocation: location)
        #expect(T?.isOptional && !T.isOptional, sourceLocation: location)
        #expect(T?.columnType == T.columnType, sourceLocation: location)
    }

    @Test func everyTypeComesBackAsItWas() {
        keeps(true, false)
        keeps(Int.min, -1, 0, Int.max)
        keeps(Int8.min, Int8.max)
        keeps(Int16.min, Int16.max)
        keeps(Int32.min, Int32.max)
        keeps(Int64.min, Int64.max)
        keeps(UInt.max, 0)
        keeps(UInt8.max, 0)
        keeps(UInt16.max, 0)
        keeps(UInt32.max, 0)
        keeps(UInt64.max, 0)
        keeps(Float.pi, -.greatestFiniteMagnitude, .infinity)
        keeps(Double.pi, -.leastNonzeroMagnitude, .infinity)
        keeps("", "grüße", "\u{0}")
        keeps(Data(), Data([0, 255]))
        keeps(Date(timeIntervalSinceReferenceDate: 0.25), .distantPast)
        keeps(UUID())
        keeps(URL(string: "https://example.org/a%20b?c=d#e") ?? URL(filePath: "/"))
        keeps(Mood.calm, .wild)
        keeps(Level.low, .high)
        keeps(Place(x: 1, name: "here"))
    }

    @Test func `S173: a Codable attribute keeps numbers that JSON does not have`() {
        #expect(Share(Share(part: .nan).storeValue)?.part.isNaN == true)
        #expect(Share(Share(part: -.infinity).storeValue)?.part == -.infinity)
    }

    @Test func aValueOfAnotherStorageClassIsRefused() {
        #expect(Int8(Value.int(128)) == nil)
        #expect(UInt8(Value.int(-1)) == nil)
        #expect(Int(Value.double(1)) == nil)
        #expect(Bool(Value.int(1)) == nil)
        #expect(String(Value.data(Data())) == nil)
        #expect(Int?(Value.string("1")) == nil)
        #expect(Mood(Value.string("angry")) == nil)
        #expect(Level(Value.int(0)) == nil)
        #expect(Place(Value.data(Data([1]))) == nil)
    }

    @Test func `S173: decimals are stored exactly, in the order of their numbers`() throws {
        var random = SeededGenerator()
        var numbers: [Decimal] = [0, 1, -1, Decimal.greatestFiniteMagnitude, -Decimal.greatestFiniteMagnitude]
        numbers += [.leastNonzeroMagnitude, -.leastNonzeroMagnitude, Decimal(string: "0.1")!, Decimal(string: "-0.10")!]
        for _ in 0..<300 {
            let mantissa = Decimal(Int64.random(in: .min ... .max, using: &random)) * (random.below(2) == 0 ? 1 : 12_345_678_901)
            let small = Decimal(random.below(2000) - 1000)
            let exponent = random.below(80) - 40
            let text = "\(random.below(2) == 0 ? mantissa : small)E\(exponent)"
            numbers.append(try #require(Decimal(string: text), "\(text)"))
        }
        for number in numbers { #expect(Decimal(number.storeValue) == number, "\(number), seed \(Seed.value)") }
        for (a, b) in zip(numbers, numbers.shuffled(using: &random)) {
            guard case .data(let first) = a.storeValue, case .data(let second) = b.storeValue else { return }
            #expect((a < b) == first.lexicographicallyPrecedes(second), "\(a) and \(b), seed \(Seed.value)")
            #expect((a == b) == (first == second), "\(a) and \(b), seed \(Seed.value)")
        }
        #expect(try #require(Decimal(Decimal.nan.storeValue)).isNaN)
        #expect(Decimal(.data(Data())) == 0)
        // Bytes of a damaged file are refused or read as some number.
        for _ in 0..<2000 {
            _ = Decimal(.data(Data((0..<random.below(40)).map { _ in UInt8(random.below(256)) })))
        }
    }

    @Test func equalCodableValuesHaveEqualBytes() {
        #expect(Place(x: 1, name: "a").storeValue == Place(x: 1, name: "a").storeValue)
    }
}
