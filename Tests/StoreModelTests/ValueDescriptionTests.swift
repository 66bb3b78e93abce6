import Foundation
import StoreInterface
import StoreModel
import Testing

@Suite struct ValueDescriptionTests {
    @Test func `a message shows short values whole and long ones by their beginning and byte count`() {
        #expect(Value.string("short").description == "\"short\"")
        #expect(Value.string(String(repeating: "a", count: 60)).description == "\"" + String(repeating: "a", count: 60) + "\"")
        let long = Value.string(String(repeating: "ä", count: 10_000_000)).description
        #expect(long == "\"" + String(repeating: "ä", count: 60) + "…\" (20000000 bytes)")
        // One character of many code points.
        #expect(Value.string("e" + String(repeating: "\u{301}", count: 100_000)).description.utf8.count < 1000)
        #expect(Value.data(Data(count: 1 << 20)).description == "data of 1048576 bytes")
        #expect(Value.null.description == "null" && Value.int(-3).description == "-3")
    }
}
