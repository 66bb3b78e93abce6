import StoreInterface
import StoreModel
import Testing

@Suite struct ValueLiteralTests {
    @Test func `literals make values of their storage class`() {
        let values: [Value] = [1, -1, 2.5, true, "text", "\(1 + 1) texts"]
        #expect(values == [.int(1), .int(-1), .double(2.5), .bool(true), .string("text"), .string("2 texts")])
        #expect(Value.int(.min) == -9_223_372_036_854_775_808)
    }

    /// A conditional `nil` is the absence of a value, and not the value `.null`.
    @Test func `nil is no literal of a value`() {
        let present = Value.int(1)
        let isAbsent = Bool.random()
        let value = isAbsent ? nil : present
        #expect((value == nil) == isAbsent)
    }
}
