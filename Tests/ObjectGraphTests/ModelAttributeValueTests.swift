import ObjectGraph
import StoreInterface
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

private enum Mood: String, AttributeValue { case calm, wild }
private enum Level: Int8, AttributeValue { case low = -1, high = 1 }
private struct Place: CodableAttribute, Equatable { var x: Int, name: String }

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

    @Test func equalCodableValuesHaveEqualBytes() {
        #expect(Place(x: 1, name: "a").storeValue == Place(x: 1, name: "a").storeValue)
    }
}
