#include <gtest/gtest.h>

#include <set>

#include "backends/file/name.hpp"

namespace dlock::file {
namespace {

std::string joined(const Name& name) {
  std::string out;
  for (const std::string& folder : name.folders) out += folder + '/';
  return out + name.leaf;
}

TEST(FileName, IsReversibleSafeAndDifferentForDifferentKeys) {
  std::set<std::string> names;
  const std::string a(199, 'a');
  const std::vector<std::string> keys{"job",
                                      "Job",
                                      "a b",
                                      "a/b",
                                      ".",
                                      "..",
                                      "../x",
                                      "%",
                                      "%41",
                                      "A",
                                      "~",
                                      "a~1",
                                      a,
                                      a + "a",
                                      a + "aa",
                                      a + "a.",
                                      a + "a..",
                                      a + ".",
                                      a + "%",
                                      a + "%2E",
                                      a + "a%2E",
                                      a + "a.x",
                                      std::string(255, '%'),
                                      std::string(255, '.'),
                                      std::string(255, '/'),
                                      std::string(198, 'a') + "%%%"};
  for (const std::string& key : keys) {
    const Name name = name_of(key);
    EXPECT_TRUE(names.insert(joined(name)).second) << key;
    EXPECT_EQ(key_of(name.folders, name.leaf), key);
    EXPECT_LE(slot_name(name.leaf, UINT32_MAX).size(), 255u);
    EXPECT_NE(name.leaf[0], '.');
    EXPECT_EQ(name.leaf.find('/'), std::string::npos);
    EXPECT_EQ(name.leaf.find('~'), std::string::npos);
    EXPECT_FALSE(is_folder_name(name.leaf));
    EXPECT_LE(name.folders.size(), 3u);
    for (const std::string& folder : name.folders) {
      EXPECT_TRUE(is_folder_name(folder)) << folder;
      EXPECT_LE(folder.size(), 255u);
    }
  }
}

TEST(FileName, OfStrangersAndOfOurAuxiliaryFilesIsNoKey) {
  for (const std::string& name :
       {slot_name("job", 1), gate_name("job"), registrations_name("job"), std::string("%6a"),
        std::string("%zz"), std::string("a b"), std::string(".hidden"), std::string("a%")}) {
    EXPECT_FALSE(key_of({}, name)) << name;
  }
}

}  // namespace
}  // namespace dlock::file
